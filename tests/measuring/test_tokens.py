"""What counts as a token count."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.errors import StepError
from pytest_tokbudget.measuring.tokens import by_kind, checked


class Tensor:
    """Looks like a device tensor: reading it in any way would wait for the device."""

    dtype = "int64"

    def __index__(self) -> int:
        raise AssertionError("read the tensor")

    __int__ = __repr__ = __str__ = __index__  # type: ignore[assignment]

    def __gt__(self, other: object) -> bool:
        raise AssertionError("compared the tensor")


@pytest.mark.parametrize("good", [1, 10**12, np.int64(7), np.uint8(7)])
def test_host_integers_are_taken_as_plain_ints(good: int) -> None:
    found = checked(good, "x")
    assert type(found) is int
    assert found == good


def test_kinds_are_taken_and_copied() -> None:
    given: dict[str, object] = {"real": np.int32(900), "slots": 1024, "draft": 0}
    found = checked(given, "x", "real")
    assert found == {"real": 900, "slots": 1024, "draft": 0}
    given["real"] = 1
    assert found == {"real": 900, "slots": 1024, "draft": 0}


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (None, "None"),
        (True, "True"),
        (1.0, "1.0"),
        (0, "0"),
        (-3, "-3"),
        ("12", "'12'"),
        (np.bool_(True), "bool"),
        (np.float64(3.0), "3.0"),
        (np.array([3]), "ndarray"),
        ([3], "list"),
        ({"real": -1}, "-1"),
        ({"real": 2.5}, "2.5"),
        ({"real": 0}, "no tokens at all"),
        ({}, "no tokens at all"),
        ({"words": 3}, "'words'"),
        ({3: 3}, "3"),
    ],
)
def test_everything_else_is_refused_by_value(bad: object, named: str) -> None:
    with pytest.raises(StepError) as caught:
        checked(bad, "step 3 returned")
    assert str(caught.value).startswith("step 3 returned")
    assert named in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: {"real": t}])
def test_a_tensor_is_refused_without_being_read(wrap: object) -> None:
    with pytest.raises(StepError, match="a tensor") as caught:
        checked(wrap(Tensor()), "step 1 returned")  # type: ignore[operator]
    assert "Tensor" in str(caught.value)


def test_a_torch_tensor_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(StepError, match=r"torch\.Tensor"):
        checked(torch.tensor(3), "step 1 returned")


def test_the_kind_that_is_judged_must_be_there() -> None:
    with pytest.raises(StepError, match="no 'real' tokens"):
        checked({"slots": 3}, "x", "real")
    with pytest.raises(StepError, match="3 'slots' for 5 'real' tokens; slots are the real ones"):
        checked({"real": 5, "slots": 3}, "x", "real")
    with pytest.raises(StepError, match="no 'real' tokens"):
        checked({"slots": 3, "real": 0}, "x", "real")


def test_bare_counts_are_of_the_gates_kind() -> None:
    assert by_kind(5, "loss") == {"loss": 5}
    assert by_kind({"real": 5}, "loss") == {"real": 5}
    assert by_kind(None, "loss") == {}
    assert by_kind(None, "loss", 7) == {"loss": 7}
