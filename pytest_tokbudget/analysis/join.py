"""Splits the host-late part of each device's idle time by what the launching thread was doing.

The ledger says when a device waited for the host; samples of the stack of the thread that launched
next say why. One gap rarely holds a sample, so the gaps before the k-th launch of a step are one
class over all steps: their milliseconds are exact, their name is what at least 60 % of at least
three samples agree on, and covers as much of them as agree. The rest stays unattributed.
Collections need no samples: they are known to the nanosecond, and all Python stands still.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..records.base import Unavailable
from .causes import Cause, HostLabels
from .intervals import interval_of
from .late_pieces import LatePieces, late_classes
from .ledger import DeviceLedger, build_ledger
from .replay_program import Frame, LabelKind, QueueOps
from .timeline import BoolArray, IntArray, Timeline
from .trace_samples import TraceSamples

ON_CPU_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HostLateRow:
    """One part of a device's host-late time, in ms a step.

    ``samples`` fell into its gaps, ``agreeing`` of them name it; ``ci`` is the 95 % interval of
    that share (Wilson). ``frame`` is ``None`` where they are too few or too different, and for
    collections. ``queue`` and ``producers`` follow a data wait one hop: the queue that was waited
    for, and what those who fill it did meanwhile (a frame and its share of their samples).
    """

    device: int
    thread: int
    cause: Cause
    frame: Frame | None
    ms_per_step: float
    samples: int
    agreeing: int
    ci: tuple[float, float] | None = None
    queue: str | None = None
    producers: tuple[Frame, float] | None = None


@dataclass(frozen=True, slots=True)
class HostLateSplit:
    """``rows`` most milliseconds first; ``labels`` for ``build_ledger``."""

    rows: tuple[HostLateRow, ...]
    labels: HostLabels


def split_host_late(
    timeline: Timeline,
    sampled: TraceSamples | None,
    collections: HostLabels | None = None,
    queues: QueueOps | None = None,
) -> HostLateSplit | Unavailable:
    """Split the host-late time of every device; ``Unavailable`` where there is no ledger.

    ``collections`` are pauses by collecting thread. Without samples only they are told apart.
    """
    standing = _for_all_threads(timeline, collections)
    ledger = build_ledger(timeline, standing)
    if isinstance(ledger, Unavailable):
        return ledger
    rows: list[HostLateRow] = []
    labels = [standing]
    for device in ledger.devices:
        rows += _collected(device, timeline)
        for piece in late_classes(timeline, device):
            row, label = _explain(timeline, piece, sampled, queues)
            rows += row
            labels += label
    return HostLateSplit(tuple(_merged(rows)), _joined(labels))


def _for_all_threads(timeline: Timeline, collections: HostLabels | None) -> HostLabels:
    """Every pause as a label of every Python thread."""
    python = [at for at, one in enumerate(timeline.threads) if one.python]
    if collections is None or not len(collections.start_ns) or not python:
        empty = np.zeros(0, np.int64)
        return HostLabels(empty.astype(np.int32), empty, empty, empty.astype(np.int8))
    count = len(collections.start_ns)
    return HostLabels(
        thread=np.repeat(np.array(python, np.int32), count),
        start_ns=np.tile(collections.start_ns, len(python)),
        end_ns=np.tile(collections.end_ns, len(python)),
        cause=np.full(count * len(python), Cause.GARBAGE_COLLECTION, np.int8),
    )


def _collected(device: DeviceLedger, timeline: Timeline) -> list[HostLateRow]:
    segments = device.segments
    ours = segments.cause == Cause.GARBAGE_COLLECTION
    owner = device.gaps.owner[segments.gap[ours]]
    found = []
    for one in np.unique(owner).tolist():
        ns = int(segments.dur_ns[ours][owner == one].sum())
        ms = ns / 1e6 / timeline.window.steps
        found.append(HostLateRow(device.device, one, Cause.GARBAGE_COLLECTION, None, ms, 0, 0))
    return found


def _explain(
    timeline: Timeline, piece: LatePieces, sampled: TraceSamples | None, queues: QueueOps | None
) -> tuple[list[HostLateRow], list[HostLabels]]:
    ms = int((piece.end_ns - piece.start_ns).sum()) / 1e6 / timeline.window.steps
    unknown = HostLateRow(piece.device, piece.owner, Cause.HOST_UNATTRIBUTED, None, ms, 0, 0)
    if sampled is None or piece.owner < 0:
        return [unknown], []
    inside = _inside(sampled, piece, sampled.samples.thread == piece.owner)
    frames = sampled.samples.frame[inside]
    found = sampled.samples.agreed(inside)
    if found is None:
        return [replace(unknown, samples=len(frames))], []
    frame, agreeing, share = found
    kind = LabelKind(sampled.samples.kinds[frame])
    cause = _cause(kind, sampled.on_cpu[inside][frames == frame])
    row = replace(
        unknown,
        cause=cause,
        frame=sampled.samples.frames[frame],
        ms_per_step=ms * share,
        samples=len(frames),
        agreeing=agreeing,
        ci=wilson_interval(agreeing, len(frames)),
    )
    if cause == Cause.DATA_WAIT and queues is not None:
        row = _followed(row, piece, sampled, queues)
    rest = replace(unknown, ms_per_step=ms * (1 - share), samples=len(frames) - agreeing)
    length = ((piece.end_ns - piece.start_ns) * share).astype(np.int64)
    label = HostLabels(
        thread=np.full(len(length), piece.owner, np.int32),
        start_ns=piece.start_ns,
        end_ns=piece.start_ns + length,
        cause=np.full(len(length), cause, np.int8),
    )
    return ([row, rest] if share < 1 else [row]), [label]


def _cause(kind: LabelKind, on_cpu: npt.NDArray[np.float64]) -> Cause:
    if kind == LabelKind.WAIT:
        return Cause.DATA_WAIT
    known = on_cpu[~np.isnan(on_cpu)]
    # A frame that neither waits nor sleeps and yet has no CPU waits for the GIL or a core.
    starved = kind == LabelKind.PYTHON and len(known) and float(known.mean()) < ON_CPU_SHARE
    return Cause.INTERPRETER_WAIT if starved else Cause.PYTHON


def _inside(sampled: TraceSamples, piece: LatePieces, of_threads: BoolArray) -> IntArray:
    """Indices of samples of some threads that fall into the pieces."""
    order = np.argsort(piece.start_ns, kind="stable")
    start, end = piece.start_ns[order], piece.end_ns[order]
    mine = np.flatnonzero(of_threads)
    times = sampled.samples.time_ns[mine]
    result: IntArray = mine[interval_of(times, start, end) >= 0]
    return result


def _followed(
    row: HostLateRow, piece: LatePieces, sampled: TraceSamples, queues: QueueOps
) -> HostLateRow:
    """Name the queue whose ``get`` covers most of the pieces, and what its producers did."""
    covered: dict[int, int] = defaultdict(int)
    gets = np.flatnonzero(queues.get & (queues.thread == piece.owner))
    for one in gets.tolist():
        overlap = np.minimum(piece.end_ns, queues.end_ns[one]) - np.maximum(
            piece.start_ns, queues.start_ns[one]
        )
        covered[int(queues.queue[one])] += int(np.clip(overlap, 0, None).sum())
    if not covered or not max(covered.values()):
        return row
    queue = max(covered, key=lambda one: covered[one])
    producing = np.unique(queues.thread[~queues.get & (queues.queue == queue)])
    inside = _inside(sampled, piece, np.isin(sampled.samples.thread, producing))
    row = replace(row, queue=queues.names[queue])
    found = sampled.samples.agreed(inside)
    if found is None:
        return row
    return replace(row, producers=(sampled.samples.frames[found.frame], found.share))


def _merged(rows: list[HostLateRow]) -> list[HostLateRow]:
    """Classes with the same answer together, most milliseconds first."""
    together: dict[tuple[object, ...], list[HostLateRow]] = defaultdict(list)
    for row in rows:
        place = None if row.frame is None else row.frame.place
        together[row.device, row.thread, row.cause, place, row.queue].append(row)
    found = []
    for alike in together.values():
        samples, agreeing = sum(one.samples for one in alike), sum(one.agreeing for one in alike)
        largest = max(alike, key=lambda one: one.ms_per_step)
        found.append(
            replace(
                largest,
                ms_per_step=sum(one.ms_per_step for one in alike),
                samples=samples,
                agreeing=agreeing,
                ci=wilson_interval(agreeing, samples) if agreeing else None,
            )
        )
    return sorted(found, key=lambda one: -one.ms_per_step)


def wilson_interval(hits: int, of: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson, 1927)."""
    from scipy.stats import binomtest

    found = binomtest(hits, of).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def _joined(labels: list[HostLabels]) -> HostLabels:
    return HostLabels(
        thread=np.concatenate([one.thread for one in labels]),
        start_ns=np.concatenate([one.start_ns for one in labels]),
        end_ns=np.concatenate([one.end_ns for one in labels]),
        cause=np.concatenate([one.cause for one in labels]),
    )
