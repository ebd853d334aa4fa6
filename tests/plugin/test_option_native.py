"""``--tokbudget-native``: command line, ini, both; what it is refused with; what it adds."""

from __future__ import annotations

import pytest

from pytest_tokbudget.entry.settings import read_settings
from pytest_tokbudget.errors import UsageError

from .conftest import Project


@pytest.mark.parametrize(
    ("ini", "args", "native"),
    [
        ("", (), False),
        ("", ("--tokbudget-native",), True),
        ("tokbudget_native = true", (), True),
        ("tokbudget_native = true", ("--no-tokbudget-native",), False),
        ("tokbudget_native = true", ("--pdb",), True),
    ],
)
def test_who_asks(pytester: pytest.Pytester, ini: str, args: tuple[str, ...], native: bool) -> None:
    pytester.makeini(f"[pytest]\n{ini}\n")

    assert read_settings(pytester.parseconfig(*args)).native is native


@pytest.mark.parametrize("other", ["--tokbudget-evidence=never", "--tokbudget-inprocess", "--pdb"])
def test_refused_where_no_evidence_is_taken(pytester: pytest.Pytester, other: str) -> None:
    config = pytester.parseconfig("--tokbudget-native", other)

    with pytest.raises(UsageError, match="--tokbudget-native") as refused:
        read_settings(config)
    assert other.partition("=")[0] in str(refused.value)


TEST = """
import zlib
import pytest
from steps import step
DATA = bytes(range(256)) * 400
def pack():
    zlib.compress(DATA, 9)
    return step()
@pytest.mark.tokbudget(steps=25, warmup=2, tolerance=None, floor="1 tok/s")
def test_step(tokbudget): tokbudget(pack)
"""


def test_the_pass_is_the_last_with_a_rate_of_its_own(bare_project: Project) -> None:
    bare_project.write("test_it.py", TEST)
    bare_project.evidence = "always"

    result = bare_project.run("--tokbudget", "--tokbudget-native", slower=5)

    assert result.ret == 0, result.stdout.str()
    test = bare_project.only_test
    assert list(test["perturbation"]) == ["stacks", "native"]
    if "native_frames" not in test["unavailable"]:
        assert {one["caller"] for one in test["native_frames"]} & {"pack"}
        result.stdout.fnmatch_lines(["*native*s of CPU time*"])
