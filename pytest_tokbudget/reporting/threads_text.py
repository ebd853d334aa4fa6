"""Threads by CPU time, in the section of a test."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from ..records.result import ThreadResult
from .figures import fitting_evidence, percent

MOST_THREADS = 4
LEAST_THREAD_PCT = 1.0
ONE_LINE = 68
"""What 80 columns have beside the labels."""
LONGEST_NAME = 24
"""Of a thread, where one line is for all."""


def threads_text(threads: Sequence[ThreadResult], *, whole: bool) -> str:
    """Threads that used a core, most CPU first; not ``whole``: no more than fit one line."""
    busy = [one for one in threads if (one.cpu_pct or 0.0) >= LEAST_THREAD_PCT]
    if not busy:
        return "none used 1 % of a core"
    texts = [_first_threads(busy, number, whole) for number in range(1, MOST_THREADS + 1)]
    if whole:
        return texts[-1]
    on_one = [one for one in texts if cell_len(fitting_evidence(one, "utf-8")) <= ONE_LINE]
    return on_one[-1] if on_one else texts[0]


def _first_threads(busy: Sequence[ThreadResult], number: int, whole: bool) -> str:
    shown = []
    for one in busy[:number]:
        cut = len(one.name) > LONGEST_NAME and not whole
        name = f"{one.name[:LONGEST_NAME]}…" if cut else one.name
        role = f" ({one.role})" if one.role else ""
        shown.append(f"{name}{role} {percent(one.cpu_pct or 0.0)}")
    more = len(busy) - len(shown)
    return " · ".join([*shown, *([f"{more} more"] if more else [])])
