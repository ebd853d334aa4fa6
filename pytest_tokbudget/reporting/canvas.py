"""Rich renderables to text of a given width, independent of the surrounding terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console, RenderableType

_JOINT = "\ue000"
"""Stands for a blank at which a line must not break: rich breaks at a no-break space too."""

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:ms|%|tok/s)(?![\w/]))")


def unbroken(text: str) -> str:
    """Return ``text`` so that ``drawn`` breaks no line between a number and its unit."""
    return _BEFORE_UNIT.sub(_JOINT, text)


def drawn(renderable: RenderableType, *, width: int, color: bool) -> str:
    """Return ``renderable`` as text at most ``width`` columns wide, without trailing blanks.

    ANSI codes only with ``color``. The environment (TERM, COLUMNS, NO_COLOR …) has no say: the
    caller has decided.
    """
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    with console.capture() as capture:
        console.print(renderable, soft_wrap=False)
    return "\n".join(line.replace(_JOINT, " ").rstrip() for line in capture.get().splitlines())
