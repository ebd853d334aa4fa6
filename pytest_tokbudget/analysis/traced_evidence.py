"""From a device trace and its surroundings to ledgers, causes and counters of one session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..records.base import Unavailable
from ..records.causes import CauseTable
from ..records.evidence import DeviceLedgerMs
from ..records.marks import MarkSeries, QueueSeries
from .causes import HostLabels
from .counters import counters_by_step
from .device_ledger import device_ledger
from .host_factor import Canary
from .join import split_host_late
from .late_sentences import late_sentences
from .ledger import build_ledger
from .queue_marks import producer_speeds, queue_ops, queue_waits_ms
from .replay_decode import decode
from .replay_program import QueueOps
from .step_causes import StepEvidence, explain_step
from .timeline import Timeline, Window
from .trace_samples import TraceSamples


@dataclass(frozen=True, slots=True)
class TraceEvidence:
    """What is known of one traced window.

    ``timing_ns`` and ``traced_ns`` are the ends of the two passes in monotonic ns, to which
    ``unix_offset_ns`` adds up to the trace's clock; ``timing_step_ms`` and ``timing_steps``
    are those of the timing pass. ``canary_unix_ns`` is where a launch-bound canary was traced,
    ``canary_ms`` how long it takes untraced.
    """

    timeline: Timeline
    timing_step_ms: float
    timing_steps: int
    timing_ns: tuple[int, int]
    traced_ns: tuple[int, int]
    unix_offset_ns: int
    marks: Sequence[MarkSeries]
    queues: Sequence[QueueSeries]
    samples: TraceSamples | None = None
    collections: HostLabels | None = None
    canary_unix_ns: tuple[int, int] | None = None
    canary_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class TraceFindings:
    """``counters`` are counts by step, as ``counters.counters_by_step`` names them; ``sentences``
    say what threads did while devices waited for the host."""

    ledgers: list[DeviceLedgerMs]
    causes: CauseTable | Unavailable
    counters: dict[str, list[int]]
    sentences: list[str]


def traced_evidence(evidence: TraceEvidence) -> TraceFindings | Unavailable:
    """Partition, replay and count one traced window; ``Unavailable`` where it is incomplete."""
    timeline = evidence.timeline
    ops = _queue_ops(evidence)
    split = split_host_late(timeline, evidence.samples, evidence.collections, ops)
    if isinstance(split, Unavailable):
        return split
    ledger = build_ledger(timeline, split.labels)
    if isinstance(ledger, Unavailable):
        return ledger
    causes = explain_step(_step_evidence(evidence, ops))
    table = None if isinstance(causes, Unavailable) else causes
    return TraceFindings(
        ledgers=[device_ledger(one, table, evidence.timing_step_ms) for one in ledger.devices],
        causes=causes,
        counters={name: counts.tolist() for name, counts in counters_by_step(timeline).items()},
        sentences=late_sentences(split.rows, timeline),
    )


def main_thread(timeline: Timeline, marks: Sequence[MarkSeries]) -> int | None:
    """The thread that makes counting marks, the busiest of several; ``None`` if not traced."""
    counting = sorted((one for one in marks if one.counts), key=lambda one: -len(one.times_ns))
    index = {one.native_id: at for at, one in enumerate(timeline.threads) if one.native_id}
    return next((index[one.native_id] for one in counting if one.native_id in index), None)


def step_ends_ns(
    marks: Sequence[MarkSeries], window_ns: tuple[int, int], unix_offset_ns: int
) -> tuple[int, ...]:
    """Unix ns of the counting marks inside a window, of the worker that makes most of them."""
    inside = [
        [one for one in series.times_ns if window_ns[0] < one <= window_ns[1]]
        for series in marks
        if series.counts
    ]
    most = max(inside, key=len, default=[])
    return tuple(one + unix_offset_ns for one in sorted(most))


def _queue_ops(evidence: TraceEvidence) -> QueueOps | None:
    """All recorded queue calls in the trace's clock; ``None`` without a recorded queue."""
    if not evidence.queues:
        return None
    return queue_ops(
        list(evidence.queues),
        list(evidence.marks),
        evidence.timeline.threads,
        evidence.unix_offset_ns,
    )


def _step_evidence(evidence: TraceEvidence, ops: QueueOps | None) -> StepEvidence:
    timeline = evidence.timeline
    main = main_thread(timeline, evidence.marks)
    samples = None if evidence.samples is None else evidence.samples.samples
    base = StepEvidence(timeline, evidence.timing_step_ms, samples, ops, main, _canary(evidence))
    if ops is None:
        return base
    waits = queue_waits_ms(
        evidence.queues,
        evidence.marks,
        timeline.threads,
        evidence.timing_ns,
        evidence.timing_steps,
    )
    base = replace(base, queue_waits_ms=waits)
    try:
        program = decode(timeline, None, ops, main).program
    except ValueError:
        return base
    speeds = producer_speeds(
        program,
        list(evidence.queues),
        timeline.threads,
        list(evidence.marks),
        evidence.timing_ns,
        evidence.traced_ns,
    )
    return replace(base, lane_speeds=speeds)


def _canary(evidence: TraceEvidence) -> Canary | None:
    if evidence.canary_unix_ns is None or evidence.canary_ms <= 0:
        return None
    window = Window(*evidence.canary_unix_ns, 1)
    try:
        program = decode(replace(evidence.timeline, window=window)).program
    except ValueError:
        return None
    return Canary(program, evidence.canary_ms)
