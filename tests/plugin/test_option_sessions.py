"""``--tokbudget-sessions``: command line, ini, marker, both."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Project

TEST = (
    "import pytest\n"
    "from steps import step\n"
    "@pytest.mark.tokbudget(steps=8, warmup=1, tolerance=None, floor='1 tok/s'{more})\n"
    "def test_step(tokbudget): tokbudget(step)\n"
)


@pytest.mark.parametrize(
    ("lines", "more", "args", "count"),
    [
        ("", "", (), 1),
        ("", "", ("--tokbudget-sessions", "2"), 2),
        ("tokbudget_sessions = 2:3", "", (), 2),
        ("tokbudget_sessions = 3", "", ("--tokbudget-sessions=2",), 2),
        ("tokbudget_sessions = 3", ", sessions='2'", (), 2),
        ("", ", sessions=3", ("--tokbudget-sessions=2",), 2),
    ],
)
def test_the_closest_one_decides(
    bare_project: Project,
    ini: Callable[[str], None],
    lines: str,
    more: str,
    args: tuple[str, ...],
    count: int,
) -> None:
    ini(lines)
    bare_project.write("test_it.py", TEST.format(more=more))

    result = bare_project.run("--tokbudget", *args)

    assert result.ret == 0, result.stdout.str()
    assert len(bare_project.only_test["sessions"]) == count


def test_a_wrong_ini_value_names_the_ini_key(project: Project, ini: Callable[[str], None]) -> None:
    ini("tokbudget_sessions = few")

    result = project.run("--tokbudget")

    assert result.ret == 4
    assert "tokbudget_sessions" in result.stderr.str() + result.stdout.str()
