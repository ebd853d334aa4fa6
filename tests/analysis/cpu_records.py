"""Builds CPU records by hand: rounds every 10 ms, stacks written as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tokbudget.records.cpu import (
    CpuRecord,
    SampledStacks,
    SampledThread,
    ThreadClock,
    ThreadClocks,
)

ROUND_NS = 10_000_000
BEGIN_NS = 1_000_000_000


def stacks_of(
    looks: Mapping[str, Sequence[str]],
    *,
    source: dict[str, str] | None = None,
    blind: Sequence[tuple[int, int]] = (),
) -> SampledStacks:
    """``looks[thread][round]`` is a stack ``"root:1>leaf:2"`` of functions in ``/app/<name>.py``
    (or of what ``function@file:line`` says)."""
    frames: dict[tuple[str, str, int], int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    runs: list[tuple[int, int, int, int]] = []
    rounds = max(len(one) for one in looks.values())
    for thread, seen in enumerate(looks.values()):
        for at, text in enumerate(seen):
            key = tuple(frames.setdefault(_frame(one), len(frames)) for one in text.split(">"))
            stack = stacks.setdefault(key, len(stacks))
            if runs and runs[-1][:2] == (thread, stack) and runs[-1][3] == at:
                runs[-1] = (thread, stack, runs[-1][2], at + 1)
            else:
                runs.append((thread, stack, at, at + 1))
    seconds = rounds * ROUND_NS / 1e9
    return SampledStacks(
        frames=list(frames),
        stacks=[list(one) for one in stacks],
        threads=[SampledThread(name=name, native_id=100 + at) for at, name in enumerate(looks)],
        round_ns=[BEGIN_NS + at * ROUND_NS for at in range(rounds + 1)],
        run_thread=[one[0] for one in runs],
        run_stack=[one[1] for one in runs],
        run_first=[one[2] for one in runs],
        run_last=[one[3] for one in runs],
        sampler="py-spy 0.4.1",
        asked_hz=100.0,
        rate_hz=100.0,
        samples=sum(len(one) for one in looks.values()),
        seconds=seconds,
        clock_uncertainty_ns=100_000,
        blind=list(blind),
        source=[(source or {}).get(function, "") for function, _, _ in frames],
    )


def _frame(text: str) -> tuple[str, str, int]:
    place, _, line = text.rpartition(":")
    function, _, file = place.partition("@")
    return function, file or f"/app/{function}.py", int(line)


def clock_of(
    native_id: int,
    name: str,
    cpu_ms: Sequence[float],
    *,
    role: str | None = None,
    core_wait_ms: Sequence[float] = (),
    is_process: bool = False,
) -> ThreadClock:
    """A clock read every 100 ms: ``cpu_ms[i]`` used up to reading ``i``."""
    return ThreadClock(
        pid=native_id if is_process else 1,
        native_id=native_id,
        name=name,
        role=role,
        is_process=is_process,
        times_ns=[BEGIN_NS + at * 10 * ROUND_NS for at in range(len(cpu_ms))],
        cpu_ns=[round(one * 1e6) for one in cpu_ms],
        core_wait_ns=[round(one * 1e6) for one in core_wait_ms],
    )


def record_of(
    stacks: SampledStacks | None, clocks: Sequence[ThreadClock] = (), workers: Sequence[int] = ()
) -> CpuRecord:
    """A record of one second or as long as its stacks."""
    length = round((stacks.seconds if stacks is not None else 1.0) * 1e9)
    return CpuRecord(
        start_ns=BEGIN_NS,
        end_ns=BEGIN_NS + length,
        stacks=stacks,
        clocks=ThreadClocks(threads=list(clocks), usable_cores=2, seconds=length / 1e9)
        if clocks
        else None,
        workers=list(workers),
    )
