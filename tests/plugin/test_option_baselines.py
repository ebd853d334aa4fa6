"""``--tokbudget-baselines``: command line, ini, both."""

from __future__ import annotations

import json
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
    project.have_baseline()
    root = project.pytester.path
    (root / directory).parent.mkdir(exist_ok=True)
    (root / "baselines").rename(root / directory)
    (path,) = (root / directory).rglob("*.json")
    assert path.name.startswith("test_it")
    assert not json.loads(path.read_text()).get("appended")
    ini(lines)

    result = project.run("--tokbudget", "--tokbudget-append", *args)

    # It is read there, since it passes, and written there.
    assert result.ret == 0, result.stdout.str()
    assert list(root.rglob(path.name)) == [path]
    assert len(json.loads(path.read_text())["appended"]) == 1
