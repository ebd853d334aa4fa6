"""How long the tables of sampled stacks take: 200,000 samples over 160 threads, in ≤ 1 s.

    python -m benchmarks.frames_speed

Each sample is a run of its own (no thread is ever seen twice in the same stack), which is the
worst case of the compact table.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from pytest_tokbudget.analysis.frames import stack_tables
from pytest_tokbudget.records.cpu import (
    CpuRecord,
    SampledStacks,
    SampledThread,
    ThreadClock,
    ThreadClocks,
)

SAMPLES, THREADS, STACKS, FRAMES, DEPTH = 200_000, 160, 4_000, 1_500, 25
LIMIT_S = 1.0
ROUND_NS = 10_000_000


def synthetic_record() -> CpuRecord:
    """Random stacks from a fixed seed; thread clocks every 100 ms."""
    choose = np.random.default_rng(11)
    rounds = SAMPLES // THREADS
    thread = np.repeat(np.arange(THREADS), rounds)
    first = np.tile(np.arange(rounds), THREADS)
    stack = (choose.integers(0, STACKS // 2, SAMPLES) * 2) + np.tile([0, 1], SAMPLES // 2)
    looks = np.arange(0, rounds, 10) * ROUND_NS
    return CpuRecord(
        start_ns=0,
        end_ns=rounds * ROUND_NS,
        stacks=SampledStacks(
            frames=[(f"f{at}", f"/app/m{at % 200}.py", at) for at in range(FRAMES)],
            stacks=choose.integers(0, FRAMES, (STACKS, DEPTH)).tolist(),
            threads=[SampledThread(name=f"t{at}", native_id=at + 1) for at in range(THREADS)],
            round_ns=(np.arange(rounds + 1) * ROUND_NS).tolist(),
            run_thread=thread.tolist(),
            run_stack=stack.tolist(),
            run_first=first.tolist(),
            run_last=(first + 1).tolist(),
            sampler="synthetic",
            asked_hz=100.0,
            rate_hz=100.0,
            samples=SAMPLES,
            seconds=rounds * ROUND_NS / 1e9,
            clock_uncertainty_ns=0,
        ),
        clocks=ThreadClocks(
            threads=[
                ThreadClock(
                    pid=1,
                    native_id=at + 1,
                    name=f"t{at}",
                    role=f"role-{at % 4}",
                    times_ns=looks.tolist(),
                    cpu_ns=np.cumsum(choose.integers(0, 10 * ROUND_NS, len(looks))).tolist(),
                )
                for at in range(THREADS)
            ],
            usable_cores=16,
            seconds=rounds * ROUND_NS / 1e9,
        ),
        workers=list(range(1, THREADS + 1)),
    )


def tabulation_s(record: CpuRecord, repeats: int = 3) -> float:
    """Shortest of some runs, in seconds."""
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        stack_tables(record, "/app")
        taken.append(time.perf_counter() - begun)
    return min(taken)


def main() -> int:
    """Print the time; 1 when it is above the limit."""
    taken = tabulation_s(synthetic_record())
    print(f"{SAMPLES:,} samples over {THREADS} threads tabulated in {taken:.2f} s")
    return int(taken > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
