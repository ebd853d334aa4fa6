"""Whether the figures of a stored baseline can be those of measured sessions.

A file that was edited, merged or damaged must not be judged by: not by a traceback, and not by a
verdict that rests on a rate no session ever had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from ..errors import UnreadableError
from ..records.baseline import Baseline, StoredSession
from ..records.counters import ExactCounters
from .contradictions import contradictions

_MOST_SHOWN = 3


@dataclass(frozen=True)
class _Right:
    """What a figure has to be, in words and as a test."""

    words: str
    holds: Callable[[float], bool]


_ABOVE_0 = _Right("a number above 0", lambda value: value > 0)
_FROM_0 = _Right("0 or more", lambda value: value >= 0)
_FROM_1 = _Right("1 or more", lambda value: value >= 1)
_SHARE = _Right("a share from 0 to 1", lambda value: 0 <= value <= 1)
_CHANGE = _Right("a percentage of -100 or more", lambda value: value >= -100)

_SESSION = {
    "tok_s": _ABOVE_0,
    "tokens": _FROM_1,
    "steps": _FROM_1,
    "seconds": _ABOVE_0,
    "warmup_steps": _FROM_0,
    "warmup_seconds": _FROM_0,
    "unix_s": _FROM_0,
    "usable_cores": _FROM_1,
    "core_wait_share": _SHARE,
    "steal_share": _SHARE,
    "power_capped_share": _SHARE,
}
_LEARNED = {"variance": _FROM_0, "degrees": _FROM_0, "jobs": _FROM_1}
_ENTRY = {"new_tok_s": _ABOVE_0, "old_tok_s": _ABOVE_0, "change_pct": _CHANGE}


def check_figures(baseline: Baseline, *, path: Path, what_next: str) -> None:
    """Raise UnreadableError, naming field, value and what is right, if a figure cannot be one."""
    flaws = list(_impossible(baseline)) or list(contradictions(baseline))
    if flaws:
        more = len(flaws) - _MOST_SHOWN
        shown = "; ".join(flaws[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        raise UnreadableError(f"{path}: no baseline that was measured: {shown}; {what_next}")


def _impossible(baseline: Baseline) -> Iterator[str]:
    """Figures that no measurement gives, whatever stands beside them."""
    for part, sessions in (("anchor", baseline.anchor), ("appended", baseline.appended)):
        for index, session in enumerate(sessions):
            yield from _of_session(f"{part}[{index}]", session)
    if baseline.learned is not None:
        yield from _wrong("learned", baseline.learned, _LEARNED)
    for index, entry in enumerate(baseline.log):
        at = f"log[{index}]"
        yield from _wrong(at, entry, _ENTRY)
        if entry.change_ci_pct is not None:
            yield from _ordered(f"{at}.change_ci_pct", entry.change_ci_pct, _CHANGE)


def _of_session(at: str, session: StoredSession) -> Iterator[str]:
    yield from _wrong(at, session, _SESSION)
    for name, value in session.canaries_ms.items():
        yield from _unless(f"{at}.canaries_ms[{name!r}]", value, _ABOVE_0)
    if session.counters is not None:
        yield from _of_counters(f"{at}.counters", session.counters)


def _of_counters(at: str, counters: ExactCounters) -> Iterator[str]:
    for name, found in counters.counts.items():
        count, steps = found if isinstance(found, tuple) else (found, 1)
        yield from _unless(f"{at}.counts[{name!r}]", count, _FROM_0)
        yield from _unless(f"{at}.counts[{name!r}][1]", steps, _FROM_1)
    for name, ends in counters.varying.items():
        yield from _ordered(f"{at}.varying[{name!r}]", ends, _FROM_0)


def _wrong(at: str, record: object, rights: Mapping[str, _Right]) -> Iterator[str]:
    for name, right in rights.items():
        value = getattr(record, name)
        if value is not None:
            yield from _unless(f"{at}.{name}", value, right)


def _ordered(at: str, ends: tuple[float, float], right: _Right) -> Iterator[str]:
    for index, end in enumerate(ends):
        yield from _unless(f"{at}[{index}]", end, right)
    if ends[0] > ends[1]:
        yield f"{at} is {list(ends)}, expected the smaller end first"


def _unless(at: str, value: float, right: _Right) -> Iterator[str]:
    if not (isfinite(value) and right.holds(value)):
        yield f"{at} is {value!r}, expected {right.words}"
