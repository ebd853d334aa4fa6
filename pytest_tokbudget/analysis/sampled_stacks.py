"""Raw rounds and runs → the record: on the measured process's clock, without blind stretches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..records.cpu import SampledStacks, SampledThread
from .beacon_clock import Ints, SolvedClock, blind_stretches, solve_clock
from .chrometrace import FrameKey, RawStacks, Run

OUR_THREADS = "tokbudget-"
BLIND_NS = 100_000_000
BLIND_INTERVALS = 8
STACKS_OF_ROUND = 0.45
"""The part of a round in which py-spy reads stacks, one thread after another; before it, it asks
the kernel for the states of all threads (measured on 11 threads: 0.96 ms of a round of 2.1)."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the stacks were sampled. ``bounds_ns`` are the process's clock when the sampler was
    spawned and when it had ended; ``round_ns`` is the time it takes to look at all threads once
    (0: not known); ``lifetimes_ns`` the first and last moment each native id was seen alive."""

    beacon_ns: Sequence[int]
    beacon_id: int
    markers: tuple[str, str]
    bounds_ns: tuple[int, int]
    asked_hz: float
    samples: int
    errors: int
    sampler: str
    round_ns: int = 0
    own_cpu_pct: float | None = None
    lifetimes_ns: Mapping[int, tuple[int, int]] | None = None


def sampled_stacks(raw: RawStacks, sampling: Sampling) -> SampledStacks:
    """Put ``raw`` on the process's clock; ``unaligned`` where the beacon does not tell it.

    Then the time is as good as the moments between which the sampler must have begun: enough for
    tables and for blind stretches that outlast the doubt, too coarse to find gaps with.
    """
    found = _clock(raw, sampling)
    clock = _coarse_clock(raw, sampling) if isinstance(found, str) else found
    rounds = np.array(raw.round_us, np.int64) * 1000 + clock.offset_ns
    interval = 1e9 / max(sampling.asked_hz, 1.0)
    least = max(BLIND_NS, round(BLIND_INTERVALS * interval))
    log = np.array(sampling.beacon_ns, np.int64)
    doubt_ns = clock.uncertainty_ns if isinstance(found, str) else 0
    blind = blind_stretches(rounds, log, least, doubt_ns)
    kept, ours = _kept_threads(raw)
    runs = _within_lifetimes(raw, rounds, sampling.lifetimes_ns or {}, kept)
    unseen = sum(end - start for start, end in blind)
    seconds = max(int(rounds[-1] - rounds[0]) - unseen, 1) / 1e9
    # The sampler counts thread × round; ours are in its count and not in the record.
    share = len(kept) / max(len(kept) + ours, 1)
    alive = _mean_alive(rounds, runs)
    samples = round(sampling.samples * share)
    return SampledStacks(
        frames=list(raw.frames),
        stacks=[list(one) for one in raw.stacks],
        threads=_threads(raw, kept, sampling),
        round_ns=rounds.tolist(),
        run_thread=[kept[one[0]] for one in runs],
        run_stack=[one[1] for one in runs],
        run_first=[one[2] for one in runs],
        run_last=[one[3] for one in runs],
        sampler=sampling.sampler,
        asked_hz=sampling.asked_hz,
        rate_hz=samples / alive / seconds if alive else 0.0,
        samples=samples,
        seconds=seconds,
        clock_uncertainty_ns=clock.uncertainty_ns,
        unaligned=found if isinstance(found, str) else "",
        blind=blind,
        errors=sampling.errors,
        own_cpu_pct=sampling.own_cpu_pct,
    )


def _clock(raw: RawStacks, sampling: Sampling) -> SolvedClock | str:
    states = np.full(len(raw.round_us), -1, np.int64)
    markers = [_marker(raw.frames, stack, sampling.markers) for stack in raw.stacks]
    for thread, stack, first, last in raw.runs:
        if raw.threads[thread][0] == sampling.beacon_id:
            states[first:last] = markers[stack]
    seen = states >= 0
    if not seen.any():
        return "the sampler never saw the beacon"
    looks = np.array(raw.round_us, np.int64)[seen] * 1000
    log = np.array(sampling.beacon_ns, np.int64)
    return solve_clock(looks, states[seen], log, _offset_bounds(raw, sampling))


def _offset_bounds(raw: RawStacks, sampling: Sampling) -> tuple[int, int]:
    spawned, ended = sampling.bounds_ns
    return spawned, max(spawned, ended - raw.round_us[-1] * 1000)


def _coarse_clock(raw: RawStacks, sampling: Sampling) -> SolvedClock:
    low, high = _offset_bounds(raw, sampling)
    return SolvedClock((low + high) // 2, (high - low) // 2, 0.0)


def _marker(frames: Sequence[FrameKey], stack: Sequence[int], markers: tuple[str, str]) -> int:
    names = {frames[one][0] for one in stack}
    found = [at for at, marker in enumerate(markers) if marker in names]
    return found[0] if len(found) == 1 else -1


def _kept_threads(raw: RawStacks) -> tuple[dict[int, int], int]:
    """Index in the record of each thread that is not ours, and how many are."""
    theirs = [at for at, (_, name) in enumerate(raw.threads) if not name.startswith(OUR_THREADS)]
    return {at: new for new, at in enumerate(theirs)}, len(raw.threads) - len(theirs)


def _threads(raw: RawStacks, kept: Mapping[int, int], sampling: Sampling) -> list[SampledThread]:
    places = {native: at for at, (native, _) in enumerate(raw.threads)}
    beacon = places.get(sampling.beacon_id, 0)
    each = STACKS_OF_ROUND * sampling.round_ns / max(len(raw.threads), 1)
    return [
        SampledThread(
            name=raw.threads[at][1],
            native_id=raw.threads[at][0],
            lag_ns=round((at - beacon) * each),
        )
        for at in kept
    ]


def _within_lifetimes(
    raw: RawStacks,
    rounds: Ints,
    lifetimes: Mapping[int, tuple[int, int]],
    kept: Mapping[int, int],
) -> list[Run]:
    """Runs of ``kept`` threads; those of a thread that ended stop there."""
    runs = []
    for thread, stack, first, last in raw.runs:
        if thread not in kept:
            continue
        alive = lifetimes.get(raw.threads[thread][0])
        if alive is not None and rounds[last] > alive[1]:
            last = max(first, int(np.searchsorted(rounds, alive[1], side="right")))
        if last > first:
            runs.append((thread, stack, first, last))
    return runs


def _mean_alive(rounds: Ints, runs: Sequence[Run]) -> float:
    """Mean number of threads with a stack."""
    if len(rounds) < 2 or not runs:
        return 0.0
    first, last = np.array(runs, np.int64)[:, 2:].T
    total = int((rounds[last] - rounds[first]).sum())
    return total / max(int(rounds[-1] - rounds[0]), 1)
