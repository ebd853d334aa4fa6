"""``--tokbudget-baselines``: command line, ini, both."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Project


@pytest.mark.parametrize(
    ("lines", "args", "directory"),
    [
        ("", (), "baselines"),
        ("", ("--tokbudget-baselines", "kept/here"), "kept/here"),
        ("tokbudget_baselines = from_ini", (), "from_ini"),
        ("tokbudget_baselines = from_ini", ("--tokbudget-baselines=typed",), "typed"),
    ],
)
def test_where_baselines_go(
    project: Project,
    ini: Callable[[str], None],
    lines: str,
    args: tuple[str, ...],
    directory: str,
) -> None:
    ini(lines)

    result = project.run("--tokbudget-refresh", "first", "--tokbudget-sessions=3", *args)

    assert result.ret == 0, result.stdout.str()
    (path,) = (project.pytester.path / directory).rglob("*.json")
    assert path.name.startswith("test_it")
    assert project.run("--tokbudget", *args).ret == 0
