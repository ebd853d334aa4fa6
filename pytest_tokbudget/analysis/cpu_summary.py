"""What the CPU evidence of a session says: hot frames, threads, sentences on what stands out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from ..records.base import Unavailable
from ..records.cpu import CpuRecord, ThreadClock
from ..records.marks import MarkSeries, QueueSeries, SpanSeries
from ..records.result import FrameResult, ThreadResult
from .cpu_findings import cpu_sentences
from .frame_kinds import FrameKind
from .frame_threads import FrameThreads
from .frames import FrameRow, StackTables, stack_tables
from .limiting_role import limiting_role
from .role_use import LimitingRole

MOST_FRAMES = 20
LEAST_SHARE = 0.01
"""Of the time of one thread."""
ALL = (0, 2**63)


@dataclass(frozen=True, slots=True)
class CpuSummary:
    """``sampling`` states samples, rate and seconds; ``sentences`` the most important first."""

    hot_frames: list[FrameResult]
    costs_s: list[float]
    threads: list[ThreadResult]
    role: LimitingRole | Unavailable
    sentences: list[str]
    sampling: str
    tables: StackTables | None
    unavailable: dict[str, str]


def summarize_cpu(
    record: CpuRecord,
    queues: Sequence[QueueSeries],
    marks: Sequence[MarkSeries],
    window_ns: tuple[int, int],
    rootdir: str = "",
    spans: Sequence[SpanSeries] = (),
) -> CpuSummary:
    """Put together what ``record`` and the recorder's marks say.

    ``window_ns`` is where the queues are judged: the timing pass, for nothing disturbed it. The
    limiting role and starved queues come from marks alone, with or without a sampler.
    """
    tables = stack_tables(record, rootdir)
    role = limiting_role(queues, marks, window_ns, spans)
    named = [] if isinstance(role, Unavailable) else role.sentences
    limiting = None if isinstance(role, Unavailable) else role.limiting
    ranked = [] if tables is None else _ranked(tables, limiting)
    seen = FrameThreads.of(tables, record.stacks, marks, limiting)
    return CpuSummary(
        hot_frames=[_frame_result(rows, cost_s, seen) for rows, cost_s in ranked],
        costs_s=[cost_s for _, cost_s in ranked],
        threads=thread_results(record),
        role=role,
        sentences=[
            *named[:1],
            *cpu_sentences(record, tables, limiting),
            *named[1:],
            *_by_line(tables, limiting),
        ],
        sampling=_sampling(record, limiting),
        tables=tables,
        unavailable=dict(record.unavailable),
    )


def _by_line(tables: StackTables | None, limiting: str | None) -> list[str]:
    """Where the limiting role's time goes; every role's where none limits alone."""
    rows = [] if tables is None else tables.by_line
    return [one.sentence for one in rows if limiting in (None, one.role)]


def hot_frames(tables: StackTables, limiting: str | None = None) -> list[FrameResult]:
    """Frames that cost, most first, the lines of one function together under the hottest, those of
    each role for themselves.

    What costs is CPU time in any thread, and in threads that mark steps also the time they stood
    somewhere without waiting for others: a disk, a device, a sleep, the GIL. Where one role limits,
    the order is that of the cost without the workers of other roles: those only wait for it.
    """
    seen = FrameThreads.of(tables)
    return [_frame_result(rows, cost_s, seen) for rows, cost_s in _ranked(tables, limiting)]


def _ranked(tables: StackTables, limiting: str | None) -> list[tuple[list[FrameRow], float]]:
    together: dict[tuple[str, str, str, str], list[FrameRow]] = defaultdict(list)
    for row in tables.by_frame:
        caller = (row.caller or "").rpartition(":")[0]
        together[row.function, row.file, caller, row.role].append(row)
    costs = [(rows, sum(_cost_s(one) for one in rows)) for rows in together.values()]
    least = LEAST_SHARE * tables.seconds
    costly = sorted((one for one in costs if one[1] >= least), key=lambda one: -one[1])
    kept = costly[:MOST_FRAMES]
    if limiting is None:
        return kept
    return sorted(kept, key=lambda one: -sum(_limiting_s(row, limiting) for row in one[0]))


def _limiting_s(row: FrameRow, limiting: str) -> float:
    """What a row costs beside the workers of roles that do not limit."""
    waits_for_it = row.kind != FrameKind.WAIT and row.role not in ("", limiting)
    return _cost_s(row) - (row.worker_s if waits_for_it else 0.0)


def _cost_s(row: FrameRow) -> float:
    if row.kind == FrameKind.WAIT:
        return 0.0
    cpu = (row.exclusive_s if row.kind == FrameKind.RUN else 0.0) if isnan(row.cpu_s) else row.cpu_s
    others = row.exclusive_s - row.worker_s
    return row.worker_s + (cpu * others / row.exclusive_s if row.exclusive_s else 0.0)


def _frame_result(rows: list[FrameRow], cost_s: float, seen: FrameThreads) -> FrameResult:
    hottest = max(rows, key=lambda one: one.exclusive_s)
    cpu = sum(one.cpu_s for one in rows)
    threads = list(dict.fromkeys(name for row in rows for name in row.threads))
    return FrameResult(
        function=hottest.function,
        file=hottest.file,
        line=hottest.line,
        share=sum(one.share for one in rows),
        samples=sum(one.samples for one in rows),
        threads=threads,
        thread_share=seen.share(cost_s, threads),
        threads_are=seen.kind(threads),
        caller=hottest.caller,
        cpu_s=None if isnan(cpu) else cpu,
    )


def thread_results(record: CpuRecord) -> list[ThreadResult]:
    """Threads and child processes by CPU time, most first; empty where no clock was read."""
    threads = record.clocks.threads if record.clocks is not None else []
    found = [
        ThreadResult(
            name=f"process {one.name}" if one.is_process else one.name,
            tid=one.native_id,
            role=one.role,
            cpu_pct=cpu_pct(one, (record.start_ns, record.end_ns)),
        )
        for one in threads
    ]
    return sorted(found, key=lambda one: -(one.cpu_pct or 0.0))


def cpu_pct(clock: ThreadClock, window_ns: tuple[int, int] = ALL) -> float | None:
    """CPU time of one core over the time the thread was seen in a window, or at all if that holds
    fewer than two readings; ``None`` if it was seen once.

    Before and after the window a thread of ours or the user's only starts and ends the samplers."""
    inside = [at for at, one in enumerate(clock.times_ns) if window_ns[0] <= one <= window_ns[1]]
    first, last = (inside[0], inside[-1]) if len(inside) > 1 else (0, -1)
    elapsed = clock.times_ns[last] - clock.times_ns[first]
    return 100 * (clock.cpu_ns[last] - clock.cpu_ns[first]) / elapsed if elapsed > 0 else None


def _sampling(record: CpuRecord, limiting: str | None) -> str:
    stacks = record.stacks
    if stacks is None:
        return ""
    threads = len(set(stacks.run_thread))
    text = f"{stacks.samples:,} samples"
    text += f" of {threads} threads" if threads > 1 else ""
    text += f", {stacks.rate_hz:.0f} Hz, {stacks.seconds:.1f} s"
    if stacks.unaligned:
        text += f"; not on the trace's clock, which it is not joined to: {stacks.unaligned}"
    else:
        text += f", clock ±{stacks.clock_uncertainty_ns / 1e6:.1f} ms"
    if stacks.blind:
        lost = sum(end - start for start, end in stacks.blind) / 1e9
        times = f"{len(stacks.blind)} time{'s' if len(stacks.blind) > 1 else ''}"
        text += f"; the sampler was blind {times}, {lost:.1f} s in all: left out"
    return text if limiting is None else f"{text}; frames of {limiting} first"
