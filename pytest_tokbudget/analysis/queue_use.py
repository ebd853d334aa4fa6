"""What the queues of a session did to the workers on both sides of them.

Everything is over the session's timing pass: calls are clipped to it, and the depth is a step
function that changes when a call ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..records.marks import QueueSeries
from ..records.result import QueueResult
from ..records.run import RunRecord

Ints = npt.NDArray[np.int64]


@dataclass
class _Side:
    """One side of one queue: ``available_ns`` is the time of all its workers."""

    blocked_ns: int = 0
    available_ns: int = 0
    items: int = 0

    @property
    def blocked_pct(self) -> float | None:
        return 100 * self.blocked_ns / self.available_ns if self.available_ns else None


@dataclass
class _Use:
    """One queue, summed over sessions; ``depth_ns`` maps depth → ns spent there."""

    capacity: int | None = None
    low_water: int | None = None
    put: _Side = field(default_factory=_Side)
    get: _Side = field(default_factory=_Side)
    depth_ns: dict[int, int] = field(default_factory=dict)
    dips: int | None = None


def queue_results(runs: Iterable[RunRecord]) -> list[QueueResult]:
    """Return the use of each queue in the timing passes of ``runs``, in order of appearance."""
    uses: dict[str, _Use] = {}
    for run in runs:
        start, end = run.timing.start_ns, run.timing.end_ns
        by_name: dict[str, list[QueueSeries]] = {}
        for series in run.queues:
            by_name.setdefault(series.queue, []).append(series)
        for name, both_sides in by_name.items():
            _add(uses.setdefault(name, _Use()), both_sides, start, end)
    return [_result(name, use) for name, use in uses.items()]


def _add(use: _Use, both_sides: Sequence[QueueSeries], start: int, end: int) -> None:
    for series in both_sides:
        side = use.put if series.side == "put" else use.get
        starts, ends = _array(series.start_ns), _array(series.end_ns)
        clipped = np.minimum(ends, end) - np.maximum(starts, start)
        moved = (_array(series.sequence) >= 0) & (ends > start) & (ends <= end)
        side.blocked_ns += int(np.maximum(clipped, 0).sum())
        side.available_ns += end - start
        side.items += int(moved.sum())
        use.capacity = series.capacity if use.capacity is None else use.capacity
        use.low_water = series.low_water if use.low_water is None else use.low_water
    depths, lengths = depth_steps(both_sides, start, end)
    for depth, length in zip(depths.tolist(), lengths.tolist()):
        use.depth_ns[depth] = use.depth_ns.get(depth, 0) + length
    if use.low_water is not None and depths.size:
        use.dips = (use.dips or 0) + dips_below(depths, use.low_water)


def depth_steps(both_sides: Sequence[QueueSeries], start: int, end: int) -> tuple[Ints, Ints]:
    """Return the depths a queue had between ``start`` and ``end`` and how long each lasted, in ns.

    Time before the first call whose depth is known belongs to no depth. Both arrays have the same
    length; calls that end in the same nanosecond leave steps of length 0.
    """
    ends = np.concatenate([_array(one.end_ns) for one in both_sides] or [_array([])])
    depths = np.concatenate([_array(one.depth) for one in both_sides] or [_array([])])
    ends, depths = ends[depths >= 0], depths[depths >= 0]
    order = np.argsort(ends, kind="stable")
    ends, depths = ends[order], depths[order]
    # The last change before the window tells the depth that the window begins with.
    first = max(int(np.searchsorted(ends, start, side="right")) - 1, 0)
    last = int(np.searchsorted(ends, end, side="left"))
    depths = depths[first:last]
    edges = np.append(np.maximum(ends[first:last], start), end)
    return depths, np.diff(edges) if depths.size else _array([])


def dips_below(depths: Ints, low_water: int) -> int:
    """Return how often the depth went from at least ``low_water`` to less."""
    low = depths < low_water
    return int((low[1:] & ~low[:-1]).sum())


def _result(name: str, use: _Use) -> QueueResult:
    total = sum(use.depth_ns.values())
    return QueueResult(
        name=name,
        capacity=use.capacity,
        put_blocked_s=use.put.blocked_ns / 1e9,
        get_blocked_s=use.get.blocked_ns / 1e9,
        put_blocked_pct=use.put.blocked_pct,
        get_blocked_pct=use.get.blocked_pct,
        puts=use.put.items,
        gets=use.get.items,
        mean_depth=sum(d * ns for d, ns in use.depth_ns.items()) / total if total else None,
        occupancy=(
            {str(depth): use.depth_ns[depth] / total for depth in sorted(use.depth_ns)}
            if total
            else None
        ),
        low_water=use.low_water,
        low_water_dips=use.dips,
    )


def _array(values: Sequence[int]) -> Ints:
    return np.asarray(values, dtype=np.int64)
