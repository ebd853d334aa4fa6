from __future__ import annotations

import enum
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.errors import UsageError
from pytest_tokbudget.records.workload import Workload
from pytest_tokbudget.storing.workload_identity import CollectedTest, file_name, workload_of

from .builders import workload


class Mode(enum.Enum):
    FAST = 1


def _test(tmp_path: Path, ids: str = "", **params: Any) -> CollectedTest:
    path = tmp_path / "tests" / "test_a.py"
    return CollectedTest("tests/test_a.py::test_x", path, "TestA::test_x", ids, params)


def _identify(tmp_path: Path, ids: str = "", **params: Any) -> Workload:
    return workload_of(_test(tmp_path, ids, **params), {"token_kind": "real"}, rootdir=tmp_path)


def test_the_path_starts_at_the_rootdir_outside_git(tmp_path: Path) -> None:
    found = _identify(tmp_path)

    assert found.identity == "tests/test_a.py::TestA::test_x"
    assert found.declaration == {"token_kind": "real"}


@pytest.mark.parametrize("worktree", [False, True])
def test_the_path_starts_at_the_git_top_level(tmp_path: Path, worktree: bool) -> None:
    git = tmp_path / ".git"
    git.write_text("gitdir: elsewhere") if worktree else git.mkdir()
    rootdir = tmp_path / "tests"

    found = workload_of(_test(tmp_path), {}, rootdir=rootdir)

    assert found.path == "tests/test_a.py"


def test_a_path_has_one_spelling_on_every_file_system(tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "größe")
    test = CollectedTest("n", tmp_path / f"{decomposed}.py", "test_x")

    assert workload_of(test, {}, rootdir=tmp_path).path == "größe.py"


@pytest.mark.parametrize(
    ("ids", "params", "bad"),
    [
        ("cfg0", {"cfg": object()}, "cfg0"),
        ("3-cfg12", {"n": 3, "cfg": {"a": 1}}, "cfg12"),
        ("cfg0_1", {"cfg": [1]}, "cfg0_1"),
        ("<lambda>1", {"fn": lambda: 0}, "<lambda>1"),
        ("text0", {"text": "x" * 101}, "text0"),
        ("when0", {"when": b"x" * 101}, "when0"),
    ],
)
def test_numbered_ids_are_refused(
    tmp_path: Path, ids: str, params: dict[str, Any], bad: str
) -> None:
    with pytest.raises(UsageError, match="give ids=") as caught:
        _identify(tmp_path, ids, **params)

    assert repr(bad) in str(caught.value)
    assert "tests/test_a.py::test_x" in str(caught.value)


@pytest.mark.parametrize(
    ("ids", "params"),
    [
        ("small", {"cfg": object()}),
        ("cfg0", {"cfg": "cfg0"}),
        ("4-True-None-1.5-Mode.FAST", {"a": 4, "b": True, "c": None, "d": 1.5, "e": Mode.FAST}),
        ("ab+", {"pattern": re.compile("ab+")}),
        ("Path", {"kind": Path}),
        ("cfg-relu", {"cfg": object(), "fn": test_the_path_starts_at_the_rootdir_outside_git}),
        ("len-len2", {"fn": len, "mode": "len2"}),
    ],
)
def test_ids_that_say_something_are_taken(tmp_path: Path, ids: str, params: dict[str, Any]) -> None:
    assert _identify(tmp_path, ids, **params).param_ids == ids


def test_ids_by_argument_settle_what_the_joined_string_leaves_open(tmp_path: Path) -> None:
    params = {"cfg": object(), "name": "cfg0"}
    test = CollectedTest(
        "n", tmp_path / "a.py", "test_x", "big-cfg0", params, {"cfg": "big", "name": "cfg0"}
    )

    assert workload_of(test, {}, rootdir=tmp_path).param_ids == "big-cfg0"


def test_pytest_numbers_ids_as_is_assumed_here(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.parametrize("cfg", [object(), {}])
        @pytest.mark.parametrize("fn", [lambda: 0, lambda: 1])
        @pytest.mark.parametrize("n", [1, 2])
        def test_x(cfg, fn, n): pass
        """
    )

    items, _ = pytester.inline_genitems("-p", "no:tokbudget", "-p", "no:asyncio")

    assert len(items) == 8
    for item in items:
        callspec = item.callspec  # type: ignore[attr-defined]
        for name in ("cfg", "fn"):
            test = CollectedTest(
                "n", item.path, "test_x", callspec.id, {name: callspec.params[name]}
            )
            with pytest.raises(UsageError):
                workload_of(test, {}, rootdir=item.path.parent)


_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@given(st.lists(st.tuples(_NAMES, _NAMES, _NAMES), min_size=2, max_size=8, unique=True))
def test_workloads_that_differ_have_files_that_differ(parts: list[tuple[str, str, str]]) -> None:
    made = [workload(path=path, qualname=name, param_ids=ids) for path, name, ids in parts]
    by_identity = {one.identity: file_name(one) for one in made}

    assert len(set(by_identity.values())) == len(by_identity)
    for name in by_identity.values():
        assert re.fullmatch(r"[a-z0-9_-]{1,80}-[0-9a-f]{8}\.json", name)


def test_neither_steps_nor_declaration_move_a_file() -> None:
    assert file_name(workload(declaration={})) == file_name(workload(declaration={"a": 1}))


def test_the_file_name_is_fixed_for_ever() -> None:
    assert file_name(workload()) == "tests-test_train-py-test_step-adfa1cfc.json"
