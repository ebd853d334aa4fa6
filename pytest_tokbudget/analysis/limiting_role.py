"""Which role limits a pipeline, from the time its workers spent in queue calls and declared waits.

A worker inside ``get`` waits for those who put, inside ``put`` for those who get. The role whose
workers wait least is the one the others wait for. Where waits of which nobody knows what they are
for (``worker_time.py``) could turn that round, no role is named. Depth is shown and never decides:
a queue that hands out nothing below a low-water mark looks well filled while its readers starve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ..records.base import Unavailable
from ..records.marks import MarkSeries, QueueSeries, SpanSeries
from .role_use import LEAST_AHEAD, LimitingRole, RoleUse, StarvedQueue
from .worker_time import TimeKind, WorkerTime, worker_times

BLOCKS = 8
LEAST_AGREEING_BLOCKS = 6
STARVED = 0.05
_JOINS = (TimeKind.GET, TimeKind.PUT, TimeKind.OTHERS)


def limiting_role(
    queues: Sequence[QueueSeries],
    marks: Sequence[MarkSeries],
    window_ns: tuple[int, int],
    spans: Sequence[SpanSeries] = (),
) -> LimitingRole | Unavailable:
    """Find it in ``window_ns`` (monotonic ns); ``Unavailable`` without two roles that share queues
    or declare to wait for each other.

    Workers without a role count as a role of their own, under their name; those without a queue
    call or a wait for others in the window (one that put the first item, say) take no part, unless
    others wait for their role.
    """
    start, end = window_ns
    roles = {one.worker: one.role or one.worker for one in marks}
    times, awaited = worker_times(queues, spans, roles)
    if end <= start or not (queues or awaited):
        return Unavailable("no queue was given to recorder.queue(…)")
    for worker, role in roles.items():
        if role in awaited:
            times.setdefault(worker, WorkerTime())
    times = {
        worker: one
        for worker, one in times.items()
        if roles.get(worker, worker) in awaited or one.is_in(_JOINS, window_ns)
    }
    uses = _uses(times, roles, window_ns)
    if len(uses) < 2:
        return Unavailable("the recorded queues join no two roles")
    edges = np.linspace(start, end, BLOCKS + 1).astype(np.int64)
    parts = [_uses(times, roles, (a, b)) for a, b in pairwise(edges.tolist())]
    first, second = uses[0], uses[1]
    agreeing = sum(one[0].role == first.role for one in parts)
    ahead = first.surely_busy_share - max(one.busy_share for one in uses[1:])
    # Its own open waits may be for somebody who calls no queue: then that one limits.
    told = first.open_share < LEAST_AHEAD
    clear = told and ahead >= LEAST_AHEAD and agreeing >= LEAST_AGREEING_BLOCKS
    taking_part = [one for one in queues if one.worker in times]
    return LimitingRole(
        limiting=first.role if clear else None,
        headroom=first.busy_share / max(second.surely_busy_share, 1e-9) - 1.0,
        agreeing=agreeing,
        roles=tuple(uses),
        starved=tuple(_starved(taking_part, marks, roles, window_ns)),
    )


def _uses(
    times: Mapping[str, WorkerTime], roles: Mapping[str, str], window: tuple[int, int]
) -> list[RoleUse]:
    workers: dict[str, list[str]] = defaultdict(list)
    for worker in times:
        workers[roles.get(worker, worker)].append(worker)
    found = []
    for role, names in workers.items():
        shares = np.mean([times[one].share(window) for one in names], axis=0).tolist()
        open_names = dict.fromkeys(name for one in names for name in times[one].open_names)
        found.append(
            RoleUse(
                role=role,
                workers=len(names),
                get_share=shares[TimeKind.GET],
                put_share=shares[TimeKind.PUT],
                others_share=shares[TimeKind.OTHERS],
                open_share=shares[TimeKind.OPEN],
                open_names=tuple(open_names),
            )
        )
    return sorted(found, key=lambda one: -one.surely_busy_share)


def _inside_ns(series: QueueSeries, window: tuple[int, int]) -> float:
    start, end = np.array(series.start_ns, np.int64), np.array(series.end_ns, np.int64)
    return float(np.clip(np.minimum(end, window[1]) - np.maximum(start, window[0]), 0, None).sum())


def _starved(
    queues: Sequence[QueueSeries],
    marks: Sequence[MarkSeries],
    roles: dict[str, str],
    window: tuple[int, int],
) -> list[StarvedQueue]:
    """Those that the counting role reads first: only they cost tokens directly."""
    counting = {roles[one.worker] for one in marks if one.counts}
    by_queue: dict[str, list[QueueSeries]] = defaultdict(list)
    for series in queues:
        by_queue[series.queue].append(series)
    found = []
    for name, both in by_queue.items():
        readers = [one for one in both if one.side == "get"]
        if not readers:
            continue
        length = (window[1] - window[0]) * len(readers)
        share = sum(_inside_ns(one, window) for one in readers) / length
        if share < STARVED:
            continue
        writers = [one.worker for one in both if one.side == "put"]
        found.append(
            StarvedQueue(
                queue=name,
                role=_common(roles, [one.worker for one in readers]),
                fed_by=tuple(dict.fromkeys(roles.get(one, one) for one in writers)),
                share=share,
            )
        )
    return sorted(found, key=lambda one: (one.role not in counting, -one.share))


def _common(roles: dict[str, str], workers: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(roles.get(one, one) for one in workers))
