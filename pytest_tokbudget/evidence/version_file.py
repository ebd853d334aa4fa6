"""Version files that a build writes (setuptools-scm, hatch-vcs and others), and git ignores."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_NAME = re.compile(
    r"\w*(?:version|commit|revision|branch)\w*|__all__|_*build_date_*", re.IGNORECASE
)
_CHECKING = "TYPE_CHECKING"
_TYPING = ("__future__", "typing", "collections.abc")
_IN_TYPES = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Tuple,
    ast.Constant,
    ast.BinOp,
    ast.BitOr,
    ast.Load,
)


def only_names_a_version(path: Path) -> bool:
    """Return whether the Python file at ``path`` does nothing but name a version.

    It may assign literals to names about a version or commit, import types, and hold branches on
    ``TYPE_CHECKING``: nothing that a step could spend time on, or read another size from. Told by
    what it holds, for under the same name a module may hold anything.
    """
    if path.suffix != ".py":
        return False
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return all(_is_harmless(one) for one in tree.body)


def _is_harmless(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.ImportFrom):
        renamed = any(one.asname for one in statement.names)
        return statement.level == 0 and statement.module in _TYPING and not renamed
    if isinstance(statement, ast.If):
        # The branch that type checkers read is never run.
        checked = isinstance(statement.test, ast.Name) and statement.test.id == _CHECKING
        return checked and all(_is_harmless(one) for one in statement.orelse)
    if isinstance(statement, ast.AnnAssign):
        harmless = all(isinstance(one, _IN_TYPES) for one in ast.walk(statement.annotation))
        return harmless and _is_told([statement.target], statement.value)
    return isinstance(statement, ast.Assign) and _is_told(statement.targets, statement.value)


def _is_told(targets: list[ast.expr], value: ast.expr | None) -> bool:
    """Whether these are names about a version, and the value is written there."""
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    if len(names) < len(targets):
        return False
    if _CHECKING in names:
        return isinstance(value, ast.Constant) and value.value is False
    return all(map(_NAME.fullmatch, names)) and _is_literal(value)


def _is_literal(value: ast.expr | None) -> bool:
    if value is None or (isinstance(value, ast.Name) and value.id == "object"):
        return True
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
