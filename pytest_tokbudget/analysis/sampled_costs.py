"""What named functions cost, from the stacks that were sampled without a trace.

A trace tells which function stood between a thread's calls. What that cost it tells from few
samples, and at the speed its host had just then; the stacks pass is longer and undisturbed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from ..records.causes import CauseMs, CauseTable
from ..records.evidence import Evidence
from .replay_cause import ReplayCause

_Place: TypeAlias = "tuple[str | None, str | None, str | None]"
"""Thread, function, file."""


class _Cost(NamedTuple):
    ms: float = 0.0
    samples: int = 0


def with_sampled_costs(
    now: CauseTable, then: CauseTable, now_evidence: Evidence, then_evidence: Evidence
) -> tuple[CauseTable, CauseTable]:
    """Return both tables, ``direct_ms`` and ``samples`` of functions taken from the stacks.

    Only where these hold more samples of the function than the trace does; and of a function that
    the trace of both sessions names only where that is so on both sides.
    """
    new, old = _costs(now, now_evidence), _costs(then, then_evidence)
    named_then = {_place(one) for one in then.causes}
    known = {one for one in new if one in old or one not in named_then}
    return _priced(now, new, known), _priced(then, old, known)


def _costs(table: CauseTable, evidence: Evidence) -> dict[_Place, _Cost]:
    """Cost of each function of ``table`` that the stacks saw oftener, in that thread alone."""
    sums: dict[_Place, _Cost] = defaultdict(_Cost)
    shared: set[_Place] = set()
    for frame, ms in zip(evidence.hot_frames, evidence.frames_ms):
        for thread in frame.threads:
            place = (thread, frame.function, frame.file)
            sums[place] = _Cost(sums[place].ms + ms, sums[place].samples + frame.samples)
            if len(frame.threads) > 1:
                shared.add(place)
    return {
        _place(one): sums[_place(one)]
        for one in table.causes
        if one.cause == ReplayCause.PYTHON and _place(one) not in shared
        if sums[_place(one)].samples > (one.samples or 0)
    }


def _priced(
    table: CauseTable, costs: Mapping[_Place, _Cost], known: AbstractSet[_Place]
) -> CauseTable:
    def priced(cause: CauseMs) -> CauseMs:
        place = _place(cause)
        if place not in known or place not in costs or cause.cause != ReplayCause.PYTHON:
            return cause
        return replace(cause, direct_ms=costs[place].ms, samples=costs[place].samples)

    return replace(table, causes=[priced(one) for one in table.causes])


def _place(cause: CauseMs) -> _Place:
    return cause.thread, cause.function, cause.file
