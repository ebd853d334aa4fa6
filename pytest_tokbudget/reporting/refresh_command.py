"""The command that a person types to store or move a baseline, ready to paste into a shell."""

from __future__ import annotations

import re
import shlex

_INDENT = "  "
_CONTINUES = " \\"
_UNSAFE = re.compile(r"([^\w@%+=:,./-])", re.ASCII)


def refresh_command(nodeid: str, reason: str, width: int) -> list[str]:
    """Return the lines of the command, none wider than ``width`` columns (at least 40).

    ``reason`` is plain words. A node id that alone is wider than a line is broken as well; its
    lines then begin at the left edge, for a shell takes leading blanks for the end of a word.
    """
    lines = [f"{_INDENT}pytest"]
    for word in ("--tokbudget-refresh", f'"{reason}"', shlex.quote(nodeid)):
        if len(lines[-1]) + 1 + len(word) + len(_CONTINUES) <= width:
            lines[-1] += f" {word}"
        elif len(3 * _INDENT + word) <= width:
            lines[-1] += _CONTINUES
            lines.append(3 * _INDENT + word)
        else:
            lines[-1] += _CONTINUES
            *broken, last = _pieces(_UNSAFE.sub(r"\\\1", nodeid), width - 1)
            lines += [*(f"{piece}\\" for piece in broken), last]
    return lines


def _pieces(word: str, width: int) -> list[str]:
    """Cut ``word``, never between a backslash and the character it protects."""
    pieces = [""]
    for unit in re.findall(r"\\.|.", word):
        if len(pieces[-1]) + len(unit) > width:
            pieces.append("")
        pieces[-1] += unit
    return pieces
