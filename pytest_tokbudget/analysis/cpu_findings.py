"""Sentences on what stands out in CPU evidence: the GIL, the collector, cores, blocking I/O."""

from __future__ import annotations

from ..records.cpu import CpuRecord
from .frame_kinds import FrameKind, is_blocking_io
from .frames import FrameRow, StackTables

LATE_MS = 1.0
LEAST_WAKES = 20
COLLECTOR_PCT = 0.5
IO_SHARE = 0.01
FOREIGN_LOAD = 0.25
FULL = 2


def cpu_sentences(record: CpuRecord, tables: StackTables | None) -> list[str]:
    """Sentences, each only where its figure is worth one."""
    found = [_gil(record, tables), _collector(record), *_blocking_io(tables), _cores(record)]
    return [one for one in found if one]


def _gil(record: CpuRecord, tables: StackTables | None) -> str:
    lock = record.interpreter
    if lock is None or not lock.gil_enabled or lock.wake_late_ms is None:
        return ""
    median, high, _ = lock.wake_late_ms
    core = lock.wake_core_ms or 0.0
    if lock.wakes < LEAST_WAKES or median - core < LATE_MS:
        return ""
    text = (
        f"GIL contention: a thread that wakes runs Python {median:.1f} ms late "
        f"(median of {lock.wakes}; 95 %: {high:.0f} ms"
    )
    text += f"; {core:.1f} ms of it for a core)" if lock.wake_core_ms is not None else ")"
    holders = [] if tables is None else _by_function(tables)
    return f"{text}; most CPU: {_holder(holders)}" if holders else text


def _by_function(tables: StackTables) -> list[FrameRow]:
    """Rows of the function that uses most CPU, its hottest line first."""
    running = [one for one in tables.by_frame if one.kind == FrameKind.RUN and one.cpu_s > 0]
    if not running:
        return []
    sums: dict[tuple[str, str], float] = {}
    for row in running:
        key = (row.function, row.file)
        sums[key] = sums.get(key, 0.0) + row.cpu_s
    top = max(sums, key=lambda one: sums[one])
    return sorted(
        (one for one in running if (one.function, one.file) == top), key=lambda one: -one.cpu_s
    )


def _holder(rows: list[FrameRow]) -> str:
    first = rows[0]
    threads = list(dict.fromkeys(name for one in rows for name in one.threads))
    named = ", ".join(threads[:3]) + (f" and {len(threads) - 3} more" if len(threads) > 3 else "")
    seconds = sum(one.cpu_s for one in rows)
    return f"{first.function} ({first.file}:{first.line}) in {named}, {seconds:.1f} CPU s"


def _collector(record: CpuRecord) -> str:
    pauses, length = record.pauses, record.end_ns - record.start_ns
    spent = sum(end - start for start, end in zip(pauses.start_ns, pauses.end_ns))
    if length <= 0 or 100 * spent / length < COLLECTOR_PCT:
        return ""
    longest = max(end - start for start, end in zip(pauses.start_ns, pauses.end_ns))
    threads = record.clocks.threads if record.clocks is not None else []
    names = {one.native_id: one.name for one in threads}
    where = list(dict.fromkeys(names.get(one, f"thread {one}") for one in pauses.native_id))
    full = pauses.generation.count(FULL)
    return (
        f"the garbage collector took {100 * spent / length:.1f} % of the time, all Python threads "
        f"standing still: {len(pauses.start_ns)} collections ({full} full), "
        f"longest {longest / 1e6:.0f} ms, in {', '.join(where[:4])}"
    )


def _blocking_io(tables: StackTables | None) -> list[str]:
    if tables is None:
        return []
    of_role = {one.name: one.exclusive_s for one in tables.by_role}
    found = []
    for row in tables.by_frame:
        whole = sum(of_role.get(one, 0.0) for one in row.roles)
        if not is_blocking_io(row.text) or not whole or row.worker_s / whole < IO_SHARE:
            continue
        found.append(
            f"{' and '.join(row.roles)} spent {100 * row.worker_s / whole:.1f} % of its time in "
            f"{row.function} ({row.file}:{row.line}): {row.text}"
        )
    return found


def _cores(record: CpuRecord) -> str:
    clocks = record.clocks
    if clocks is None or clocks.seconds <= 0:
        return ""
    used = sum(one.cpu_ns[-1] - one.cpu_ns[0] for one in clocks.threads) / 1e9
    waited = sum(
        one.core_wait_ns[-1] - one.core_wait_ns[0] for one in clocks.threads if one.core_wait_ns
    )
    busy = sum(_wants_a_core(one.times_ns, one.cpu_ns, one.core_wait_ns) for one in clocks.threads)
    wanted = (used + waited / 1e9) / clocks.seconds
    if busy > clocks.usable_cores and wanted > clocks.usable_cores:
        pools = ", ".join(f"{name}={value}" for name, value in sorted(clocks.pool_settings.items()))
        return (
            f"too few cores: {busy} threads wanted {wanted:.1f} of them on average, "
            f"{clocks.usable_cores} are usable ({pools or 'OMP_NUM_THREADS is not set'})"
        )
    if busy and waited / 1e9 > FOREIGN_LOAD * (used + waited / 1e9):
        return (
            f"something else used the cores: {busy} busy threads of this process waited "
            f"{waited / 1e9:.1f} s for one and had one for {used:.1f} s, "
            f"with {clocks.usable_cores} usable"
        )
    return ""


def _wants_a_core(times: list[int], cpu: list[int], waited: list[int]) -> bool:
    wanted = cpu[-1] - cpu[0] + (waited[-1] - waited[0] if waited else 0)
    return wanted > 0.1 * (times[-1] - times[0])
