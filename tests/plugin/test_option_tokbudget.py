"""``--tokbudget`` and ``--no-tokbudget``: command line, ini, both."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Project


@pytest.mark.parametrize(
    ("lines", "args", "measured"),
    [
        ("", (), False),
        ("", ("--tokbudget",), True),
        ("tokbudget = true", (), True),
        ("tokbudget = true", ("--no-tokbudget",), False),
        ("tokbudget = false", ("--tokbudget",), True),
    ],
)
def test_who_decides(
    project: Project,
    ini: Callable[[str], None],
    lines: str,
    args: tuple[str, ...],
    measured: bool,
) -> None:
    ini(lines)

    result = project.run(*args)

    result.assert_outcomes(**({"failed": 1} if measured else {"skipped": 1}))
