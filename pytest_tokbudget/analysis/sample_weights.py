"""How long each run of a stack lasted, and how much of that its thread was on a CPU.

A round of the sampler stands for the time to the next round; blind stretches stand for nothing. On
a CPU or not is never asked of the sampler: it comes from the thread's clock. Within each interval
of the clock the CPU time goes first to the runs whose frame does not wait, evenly, and only what
they cannot hold to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..records.cpu import SampledStacks, ThreadClock

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Weights:
    """One entry a run, in seconds. ``cpu_s`` is NaN for threads whose clock is not known."""

    wall_s: Floats
    cpu_s: Floats


def run_weights(
    stacks: SampledStacks, clocks: Mapping[int, ThreadClock], waiting: npt.NDArray[np.bool_]
) -> Weights:
    """``clocks`` are by native id; ``waiting[stack]`` says whether its innermost frame waits."""
    rounds = np.array(stacks.round_ns, np.int64)
    seen_ns = _seen_until(rounds, stacks.blind)
    first, last = np.array(stacks.run_first, np.int64), np.array(stacks.run_last, np.int64)
    wall = (seen_ns[last] - seen_ns[first]) / 1e9
    cpu = np.full(len(wall), np.nan)
    thread = np.array(stacks.run_thread, np.int64)
    order = np.argsort(thread, kind="stable")
    edges = np.searchsorted(thread[order], np.arange(len(stacks.threads) + 1))
    waits = waiting[np.array(stacks.run_stack, np.int64)]
    for at, info in enumerate(stacks.threads):
        mine = order[edges[at] : edges[at + 1]]
        clock = clocks.get(info.native_id)
        if len(mine) and clock is not None and len(clock.times_ns) > 1:
            times = np.array(clock.times_ns, np.int64)
            used = np.array(clock.cpu_ns, np.float64)
            cpu[mine] = _cpu_s(rounds, (first[mine], last[mine]), waits[mine], times, used)
    # A blind stretch inside a run has no wall time here, so it may keep no CPU time either.
    return Weights(wall, np.minimum(cpu, wall))


def _seen_until(rounds: Ints, blind: list[tuple[int, int]]) -> Floats:
    """For each round: the time before it in which the sampler was not blind, ns."""
    unseen = np.zeros(len(rounds))
    for start, end in blind:
        unseen += np.clip(rounds - start, 0, end - start)
    seen: Floats = (rounds - rounds[0]) - unseen
    return seen


def _cpu_s(
    rounds: Ints,
    runs: tuple[Ints, Ints],
    waits: npt.NDArray[np.bool_],
    times: Ints,
    used: Floats,
) -> Floats:
    """CPU seconds of one thread's runs, which are in order of time and do not overlap."""
    first, last = runs
    order = np.argsort(first, kind="stable")
    start, end = rounds[first[order]], rounds[last[order]]
    waits_in_order = waits[order]
    intervals = np.diff(used)
    result = np.empty(len(first))
    left = intervals
    for waiting in (False, True):
        which = waits_in_order == waiting
        at = _time_within(start[which], end[which], times)
        lengths = np.diff(at)
        given = np.minimum(left, lengths)
        left = left - given
        total = np.concatenate(([0.0], np.cumsum(given)))
        begin = _time_within(start[which], end[which], start[which])
        until = begin + (end[which] - start[which])
        spent = np.interp(until, at, total) - np.interp(begin, at, total)
        result[order[which]] = spent / 1e9
    return result


def _time_within(start: Ints, end: Ints, moments: Ints) -> Floats:
    """How much of the stretches lies before each moment, ns."""
    if not len(start):
        return np.zeros(len(moments))
    before = np.concatenate(([0], np.cumsum(end - start)))
    at = np.searchsorted(start, moments, side="right") - 1
    inside = np.clip(moments - start[np.maximum(at, 0)], 0, (end - start)[np.maximum(at, 0)])
    result: Floats = np.where(at >= 0, before[np.maximum(at, 0)] + inside, 0).astype(np.float64)
    return result
