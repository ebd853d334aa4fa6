"""Sentences on what stands out in CPU evidence: the GIL, the collector, cores, blocking I/O."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ..records.cpu import CoreUse, CpuRecord, ThreadClocks
from .frame_kinds import FrameKind, is_blocking_io
from .frames import FrameRow, StackTables

LATE_MS = 1.0
LEAST_WAKES = 20
COLLECTOR_PCT = 0.5
IO_SHARE = 0.01
CONTENDERS = 2
LEAST_WANTED = 0.1
"""Of the time: a thread that wants the interpreter."""
LEAST_CPU = 0.02
FOREIGN_LOAD = 0.25
FULL = 2


class _Said(NamedTuple):
    """A sentence and which share of the time it is about."""

    cost: float
    text: str


def cpu_sentences(
    record: CpuRecord, tables: StackTables | None, limiting: str | None = None
) -> list[str]:
    """Sentences, each only where its figure is worth one, what costs most first.

    What waiting for the GIL costs is in no account (who waits for it looks busy), so it leads. What
    a role does that only waits for the limiting one costs nothing.
    """
    contention = _gil(record, tables)
    found = [
        *([_Said(inf, contention)] if contention else []),
        *_collector(record),
        *_cores(record.clocks),
        *_blocking_io(tables, limiting),
    ]
    return [one.text for one in sorted(found, key=lambda one: -one.cost)]


def _gil(record: CpuRecord, tables: StackTables | None) -> str:
    lock = record.interpreter
    if lock is None or not lock.gil_enabled or lock.wake_late_ms is None:
        return ""
    median, high, _ = lock.wake_late_ms
    core = lock.wake_core_ms or 0.0
    if lock.wakes < LEAST_WAKES or median - core < LATE_MS:
        return ""
    # It is our beacon that wakes late: one thread that computes keeps nobody of the program's.
    if tables is not None and _want_the_lock(record, tables) < CONTENDERS:
        return ""
    text = (
        f"GIL contention: a thread that wakes runs Python {median:.1f} ms late "
        f"(median of {lock.wakes}; 95 %: {high:.0f} ms"
    )
    text += f"; {core:.1f} ms of it for a core)" if lock.wake_core_ms is not None else ")"
    holders = [] if tables is None else _by_function(tables)
    return f"{text}; most CPU: {_holder(holders)}" if holders else text


def _want_the_lock(record: CpuRecord, tables: StackTables) -> int:
    """Threads that were seldom waiting for others: workers, and whoever had some CPU time. A thread
    that is neither stands in a call of the system's."""
    ran_s = {one.name: one.exclusive_s - one.waiting_s for one in tables.by_thread}
    threads = record.clocks.threads if record.clocks is not None else []
    return sum(
        ran_s.get(one.name, 0.0) >= LEAST_WANTED * tables.seconds
        and (
            one.native_id in record.workers
            or one.cpu_ns[-1] - one.cpu_ns[0] >= LEAST_CPU * 1e9 * tables.seconds
        )
        for one in threads
        if not one.is_process
    )


def _by_function(tables: StackTables) -> list[FrameRow]:
    """Rows of the function that uses most CPU, its hottest line first; a library's counts for the
    user's code that called it."""
    running = [one for one in tables.by_frame if one.kind == FrameKind.RUN and one.cpu_s > 0]
    if not running:
        return []
    sums: dict[str, float] = {}
    for row in running:
        sums[_users(row)] = sums.get(_users(row), 0.0) + row.cpu_s
    top = max(sums, key=lambda one: sums[one])
    return sorted((one for one in running if _users(one) == top), key=lambda one: -one.cpu_s)


def _users(row: FrameRow) -> str:
    """Function and file of the user's code, without its line."""
    return (row.caller or f"{row.function} ({row.file}:").rpartition(":")[0]


def _holder(rows: list[FrameRow]) -> str:
    first = rows[0]
    threads = list(dict.fromkeys(name for one in rows for name in one.threads))
    named = ", ".join(threads[:3]) + (f" and {len(threads) - 3} more" if len(threads) > 3 else "")
    seconds = sum(one.cpu_s for one in rows)
    where = first.caller or f"{first.function} ({first.file}:{first.line})"
    return f"{where} in {named}, {seconds:.1f} CPU s"


def _collector(record: CpuRecord) -> list[_Said]:
    pauses, length = record.pauses, record.end_ns - record.start_ns
    spent = sum(end - start for start, end in zip(pauses.start_ns, pauses.end_ns))
    if length <= 0 or 100 * spent / length < COLLECTOR_PCT:
        return []
    longest = max(end - start for start, end in zip(pauses.start_ns, pauses.end_ns))
    threads = record.clocks.threads if record.clocks is not None else []
    names = {one.native_id: one.name for one in threads}
    where = list(dict.fromkeys(names.get(one, f"thread {one}") for one in pauses.native_id))
    full = pauses.generation.count(FULL)
    text = (
        f"the garbage collector took {100 * spent / length:.1f} % of the time, all Python threads "
        f"standing still: {len(pauses.start_ns)} collections ({full} full), "
        f"longest {longest / 1e6:.0f} ms, in {', '.join(where[:4])}"
    )
    return [_Said(spent / length, text)]


def _blocking_io(tables: StackTables | None, limiting: str | None) -> list[_Said]:
    if tables is None:
        return []
    of_role = {one.name: one.exclusive_s for one in tables.by_role}
    found = []
    for row in tables.by_frame:
        whole = of_role.get(row.role, 0.0)
        if not is_blocking_io(row.text) or not whole or row.worker_s / whole < IO_SHARE:
            continue
        share = row.worker_s / whole
        text = (
            f"{row.role} spent {100 * share:.1f} % of its time in "
            f"{row.function} ({row.file}:{row.line}): {row.text}"
        )
        found.append(_Said(share if limiting is None or limiting == row.role else 0.0, text))
    return found


def _cores(clocks: ThreadClocks | None) -> list[_Said]:
    if clocks is None or clocks.seconds <= 0:
        return []
    used = sum(one.cpu_ns[-1] - one.cpu_ns[0] for one in clocks.threads) / 1e9
    waited = sum(
        one.core_wait_ns[-1] - one.core_wait_ns[0] for one in clocks.threads if one.core_wait_ns
    )
    busy = sum(_wants_a_core(one.times_ns, one.cpu_ns, one.core_wait_ns) for one in clocks.threads)
    wanted = (used + waited / 1e9) / clocks.seconds
    lost = waited / 1e9 / clocks.seconds / max(busy, 1)
    if busy > clocks.usable_cores and wanted > clocks.usable_cores:
        pools = ", ".join(f"{name}={value}" for name, value in sorted(clocks.pool_settings.items()))
        text = (
            f"too few cores: {busy} threads wanted {wanted:.1f} of them on average, "
            f"{clocks.usable_cores} are usable ({pools or 'OMP_NUM_THREADS is not set'})"
        )
        return [_Said(lost, text)]
    if busy and waited / 1e9 > FOREIGN_LOAD * wanted * clocks.seconds and _foreign(clocks.cores):
        assert clocks.cores is not None
        text = (
            f"something else used the cores: {busy} busy thread{'s' if busy > 1 else ''} of this "
            f"process waited {waited / 1e9:.1f} s for one; programs outside of it had the "
            f"{clocks.usable_cores} usable ones for {clocks.cores.others_s:.1f} CPU s, and all of "
            f"its own for {clocks.cores.tree_s:.1f}"
        )
        return [_Said(lost, text)]
    return []


def _foreign(cores: CoreUse | None) -> bool:
    """Whether others had much of cores that were seldom idle: threads also wait for each other, in
    bursts that no average shows, and under a quota that leaves cores idle."""
    if cores is None or cores.idle_s > cores.tree_s + cores.others_s:
        return False
    return cores.others_s > FOREIGN_LOAD * (cores.tree_s + cores.others_s)


def _wants_a_core(times: list[int], cpu: list[int], waited: list[int]) -> bool:
    wanted = cpu[-1] - cpu[0] + (waited[-1] - waited[0] if waited else 0)
    return wanted > 0.1 * (times[-1] - times[0])
