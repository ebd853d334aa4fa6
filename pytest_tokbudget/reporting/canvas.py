"""Rich renderables to text of a given width, independent of the surrounding terminal."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


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
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
