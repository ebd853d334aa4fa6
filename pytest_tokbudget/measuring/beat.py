"""The heartbeat: four integers that whoever watches this process from outside may read.

The launching room maps them into shared memory; without it they are a plain list. All times are
monotonic ns, which processes of one host share.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from typing import TypeAlias

from ..ports import Clock

Beat: TypeAlias = "MutableSequence[int] | memoryview[int]"
"""Slots below; a list, or a memory view of four signed 64-bit integers."""

LAST_MARK_NS = 0
"""Slot: when the last counting mark was made, or a phase began."""
ALLOWED_SILENCE_NS = 1
"""Slot: how long no counting mark may come; 0 means without limit."""
COUNTING_MARKS = 2
"""Slot: counting marks so far."""
PHASE = 3
"""Slot: one of the codes below, or ``FAILED`` plus the one in which the measurement failed."""

SETUP, WARM_UP, TIMING, EVIDENCE, DONE, FAILED = range(6)

SECOND_NS = 1_000_000_000
FIRST_MARK_SILENCE_NS = 30 * 60 * SECOND_NS
_SILENCE_STEPS = 20
_WARM_UP_SILENCE_NS = 120 * SECOND_NS
_TIMING_SILENCE_NS = 10 * SECOND_NS


def allowed_silence_ns(phase: int, median_step_ns: int | None) -> int:
    """Return how long no counting mark may come before the pipeline counts as stalled.

    Timing pass: max(10 s, 20 median steps). Warm-up: max(120 s, 20 median steps), since a step may
    compile, and the evidence pass likewise, since instruments slow steps; 30 min before the first
    step (``median_step_ns`` ``None``). 0, no limit, otherwise.
    """
    if phase not in (WARM_UP, TIMING, EVIDENCE):
        return 0
    if median_step_ns is None:
        return FIRST_MARK_SILENCE_NS
    least = _TIMING_SILENCE_NS if phase == TIMING else _WARM_UP_SILENCE_NS
    return max(least, _SILENCE_STEPS * median_step_ns)


def enter(beat: Beat, phase: int, now_ns: int, median_step_ns: int | None = None) -> None:
    """Write that ``phase`` begins now. The limit goes first to 0, so that no reader sees a new
    limit beside an old time."""
    beat[ALLOWED_SILENCE_NS] = 0
    beat[LAST_MARK_NS] = now_ns
    beat[PHASE] = phase
    beat[ALLOWED_SILENCE_NS] = allowed_silence_ns(phase, median_step_ns)


@contextmanager
def until_over(beat: Beat, clock: Clock) -> Iterator[None]:
    """Write how the measurement inside the block ended: nobody may take the author's teardown for a
    stalled step."""
    try:
        yield
    except BaseException:
        enter(beat, FAILED + beat[PHASE] % FAILED, clock.monotonic_ns())
        raise
    enter(beat, DONE, clock.monotonic_ns())
