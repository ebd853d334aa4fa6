"""Which role limits a pipeline, from the time its workers spent in queue calls.

A worker inside ``get`` waits for those who put, inside ``put`` for those who get. The role whose
workers wait least is the one the others wait for. Depth is shown and never decides: a queue that
hands out nothing below a low-water mark looks well filled while its readers starve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..records.base import Unavailable
from ..records.marks import MarkSeries, QueueSeries
from .queue_use import depth_steps, dips_below

BLOCKS = 8
LEAST_AGREEING_BLOCKS = 6
LEAST_AHEAD = 0.03
STARVED = 0.05
MOST_HEADROOM = 4.0
"""Beyond fivefold the figure rests on hardly any work of the next role."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RoleUse:
    """One role. Shares are of its workers' time, 0 … 1: in ``get``, in ``put``, in neither."""

    role: str
    workers: int
    get_share: float
    put_share: float

    @property
    def busy_share(self) -> float:
        """What is left of its time when it waits for no other role."""
        return 1.0 - self.get_share - self.put_share


@dataclass(frozen=True, slots=True)
class StarvedQueue:
    """A queue whose readers waited: ``share`` of the time of the workers of ``role``."""

    queue: str
    role: str
    fed_by: tuple[str, ...]
    share: float
    mean_depth: float | None
    capacity: int | None
    low_water: int | None
    dips: int | None


@dataclass(frozen=True, slots=True)
class LimitingRole:
    """``limiting`` is ``None`` where no role stands out. ``headroom`` is by which share the rate
    could grow if that role were faster, until the next one limits; ``agreeing`` of ``BLOCKS`` equal
    parts of the window say the same. ``roles`` are the busiest first."""

    limiting: str | None
    headroom: float
    agreeing: int
    roles: tuple[RoleUse, ...]
    starved: tuple[StarvedQueue, ...]

    @property
    def sentences(self) -> list[str]:
        """One sentence on the limiting role, and one on each starved queue."""
        alike: dict[tuple[str, tuple[str, ...]], list[StarvedQueue]] = defaultdict(list)
        for one in self.starved:
            alike[one.role, one.fed_by].append(one)
        return [_sentence(self), *(_starved_sentence(group) for group in alike.values())]


def limiting_role(
    queues: Sequence[QueueSeries], marks: Sequence[MarkSeries], window_ns: tuple[int, int]
) -> LimitingRole | Unavailable:
    """Find it in ``window_ns`` (monotonic ns); ``Unavailable`` without two roles that share queues.

    Workers without a role count as a role of their own, under their name; those without a queue
    call in the window (one that put the first item, say) take no part.
    """
    start, end = window_ns
    if end <= start or not queues:
        return Unavailable("no queue was given to recorder.queue(…)")
    roles = {one.worker: one.role or one.worker for one in marks}
    taking_part = {one.worker for one in queues if _overlaps(one, window_ns)}
    queues = [one for one in queues if one.worker in taking_part]
    uses = _uses(queues, roles, window_ns)
    if len(uses) < 2:
        return Unavailable("the recorded queues join no two roles")
    edges = np.linspace(start, end, BLOCKS + 1).astype(np.int64)
    parts = [_uses(queues, roles, (a, b)) for a, b in pairwise(edges.tolist())]
    first, second = uses[0], uses[1]
    agreeing = sum(one[0].role == first.role for one in parts if one)
    clear = first.busy_share - second.busy_share >= LEAST_AHEAD
    return LimitingRole(
        limiting=first.role if clear and agreeing >= LEAST_AGREEING_BLOCKS else None,
        headroom=first.busy_share / max(second.busy_share, 1e-9) - 1.0,
        agreeing=agreeing,
        roles=tuple(uses),
        starved=tuple(_starved(queues, marks, roles, window_ns)),
    )


def _overlaps(series: QueueSeries, window: tuple[int, int]) -> bool:
    return any(
        start < window[1] and end > window[0] for start, end in zip(series.start_ns, series.end_ns)
    )


def _uses(
    queues: Sequence[QueueSeries], roles: dict[str, str], window: tuple[int, int]
) -> list[RoleUse]:
    workers: dict[str, set[str]] = defaultdict(set)
    inside: dict[tuple[str, str], float] = defaultdict(float)
    for series in queues:
        role = roles.get(series.worker, series.worker)
        workers[role].add(series.worker)
        inside[role, series.side] += _inside_ns(series, window)
    length = window[1] - window[0]
    found = [
        RoleUse(
            role=role,
            workers=len(names),
            get_share=inside[role, "get"] / (len(names) * length),
            put_share=inside[role, "put"] / (len(names) * length),
        )
        for role, names in workers.items()
    ]
    return sorted(found, key=lambda one: -one.busy_share)


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
        depths, lengths = depth_steps(both, *window)
        low = next((one.low_water for one in both if one.low_water is not None), None)
        total = int(lengths.sum())
        writers = [one.worker for one in both if one.side == "put"]
        found.append(
            StarvedQueue(
                queue=name,
                role=_common(roles, [one.worker for one in readers]),
                fed_by=tuple(dict.fromkeys(roles.get(one, one) for one in writers)),
                share=share,
                mean_depth=float((depths * lengths).sum() / total) if total else None,
                capacity=next((one.capacity for one in both if one.capacity is not None), None),
                low_water=low,
                dips=dips_below(depths, low) if low is not None and depths.size else None,
            )
        )
    return sorted(found, key=lambda one: (one.role not in counting, -one.share))


def _common(roles: dict[str, str], workers: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(roles.get(one, one) for one in workers))


def _sentence(found: LimitingRole) -> str:
    first, second = found.roles[0], found.roles[1]
    waits = [f"{one.role} {1 - one.busy_share:.0%}" for one in found.roles]
    if found.limiting is None:
        return (
            f"no role alone limits the pipeline: shares of time waiting for others: {_and(waits)}"
        )
    more = (
        f"by at most {found.headroom:.0%}" if found.headroom <= MOST_HEADROOM else "many times over"
    )
    return (
        f"{first.role} limits the pipeline: its {first.workers} "
        f"worker{'s' if first.workers != 1 else ''} waited {1 - first.busy_share:.0%} of the time "
        f"for others, {_and(waits[1:])}; a faster {first.role} could raise the rate "
        f"{more} before {second.role} limits"
    )


def _starved_sentence(alike: Sequence[StarvedQueue]) -> str:
    """Queues between the same roles share a sentence; figures are those of the most starved."""
    one = alike[0]
    depth = "" if one.mean_depth is None else f"; mean depth {one.mean_depth:.1f}"
    if depth and one.capacity is not None:
        depth += f" of {one.capacity}"
    if one.dips is not None:
        depth += f", {one.dips} dip{'s' if one.dips != 1 else ''} below {one.low_water}"
    fed = f" (fed by {_and(one.fed_by)})" if one.fed_by else ""
    others = f" and {len(alike) - 1} like it" if len(alike) > 1 else ""
    share = f"{one.share:.0%}"
    return f"{one.role} waited {share} of its time in get of {one.queue!r}{others}{fed}{depth}"


def _and(words: Sequence[str]) -> str:
    return (
        ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + (words[-1] if words else "")
    )
