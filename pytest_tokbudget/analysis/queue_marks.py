"""Recorded queue marks → what a replay needs of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pytest_tokbudget.records.marks import MarkSeries, QueueSeries

from .replay_program import Program, QueueOps
from .timeline import ThreadInfo

SPEED_BOUNDS = (0.25, 4.0)
LEAST_ITEMS = 5


def queue_ops(
    queues: list[QueueSeries],
    marks: list[MarkSeries],
    threads: tuple[ThreadInfo, ...],
    unix_offset_ns: int,
) -> QueueOps:
    """Puts and gets in the trace's clock, by thread of the trace.

    ``unix_offset_ns`` added to the marks' monotonic times gives Unix time. Workers are found by
    the native id of their marks, else by name; those in no trace are left out, and so are calls
    that gave up.
    """
    names = sorted({one.queue for one in queues})
    capacity = {one.queue: one.capacity or 0 for one in queues}
    rows: list[tuple[int, int, int, int, int, int]] = []
    for series in queues:
        thread = _thread_of(series.worker, marks, threads)
        if thread is None:
            continue
        queue, getting = names.index(series.queue), int(series.side == "get")
        rows += [
            (thread, queue, getting, item, start + unix_offset_ns, end + unix_offset_ns)
            for item, start, end in zip(series.sequence, series.start_ns, series.end_ns)
            if item >= 0
        ]
    table = np.array(rows, np.int64).reshape(-1, 6)
    return QueueOps(
        thread=table[:, 0].astype(np.int32),
        queue=table[:, 1].astype(np.int32),
        get=table[:, 2] == 1,
        item=table[:, 3].copy(),
        start_ns=table[:, 4].copy(),
        end_ns=table[:, 5].copy(),
        names=tuple(names),
        capacity=tuple(capacity[one] for one in names),
    )


def _thread_of(
    worker: str, marks: Sequence[MarkSeries], threads: tuple[ThreadInfo, ...]
) -> int | None:
    native = {one.native_id for one in marks if one.worker == worker and one.native_id}
    by_id = (at for at, one in enumerate(threads) if one.native_id in native)
    by_name = (at for at, one in enumerate(threads) if one.name == worker)
    return next(by_id, next(by_name, None))


def queue_waits_ms(
    queues: Sequence[QueueSeries],
    marks: Sequence[MarkSeries],
    threads: tuple[ThreadInfo, ...],
    window_ns: tuple[int, int],
    steps: int,
) -> dict[int, float]:
    """Time in queue calls inside a window (monotonic ns) by thread of the trace, ms a step."""
    waits: dict[int, float] = {}
    start_ns, end_ns = window_ns
    for series in queues:
        thread = _thread_of(series.worker, marks, threads)
        if thread is None:
            continue
        inside = np.minimum(series.end_ns, end_ns) - np.maximum(series.start_ns, start_ns)
        spent_ms = float(np.maximum(inside, 0).sum()) / 1e6 / steps
        waits[thread] = waits.get(thread, 0.0) + spent_ms
    return waits


def producer_speeds(
    program: Program,
    queues: list[QueueSeries],
    threads: tuple[ThreadInfo, ...],
    marks: list[MarkSeries],
    timing_ns: tuple[int, int],
    evidence_ns: tuple[int, int],
) -> tuple[tuple[int, float], ...]:
    """Speeds of the lanes that make no driver call, for ``HostModel.lane_speed``.

    Their pace is recorded in both passes, so nothing need be modelled: the median time between two
    queue calls without the tracer, over that with it. Passes are (start, end) in monotonic ns;
    lanes with fewer than five items in either are left out.
    """
    speeds = []
    for lane, thread in enumerate(program.lane_threads):
        mine = slice(program.lane_bounds[lane], program.lane_bounds[lane + 1])
        if program.host.records[mine].any():
            continue
        series = [one for one in queues if _thread_of(one.worker, marks, threads) == thread]
        plain, traced = (_between_calls_ns(series, one) for one in (timing_ns, evidence_ns))
        if plain is not None and traced:
            low, high = SPEED_BOUNDS
            speeds.append((lane, min(max(plain / traced, low), high)))
    return tuple(speeds)


def _between_calls_ns(series: list[QueueSeries], window: tuple[int, int]) -> float | None:
    """Median time from the end of a worker's queue call to the start of its next."""
    calls = sorted(
        (start, end)
        for one in series
        for start, end in zip(one.start_ns, one.end_ns)
        if start >= window[0] and end <= window[1]
    )
    if len(calls) <= LEAST_ITEMS:
        return None
    return float(np.median([after[0] - before[1] for before, after in pairwise(calls)]))
