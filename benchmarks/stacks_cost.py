"""What the CPU evidence costs the program it looks at: paired blocks with and without it.

    python -m benchmarks.stacks_cost [--pairs 8] [--seconds 3] [--cores 2]

Two programs, each in a process of its own bound to ``--cores`` cores: twelve busy Python threads,
and one working thread beside 150 idle ones. A pair is one block without and one with the evidence,
in random order; starting and stopping it lies outside the blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from statistics import mean, median, stdev

from pytest_tokbudget.evidence.cpu import CpuEvidence
from pytest_tokbudget.records.cpu import CpuRecord

PROGRAMS = {"12 busy threads": (12, 0), "1 busy and 150 idle threads": (1, 150)}
LIMIT_PCT = 5.0


class Work:
    """Threads that count the steps they make."""

    def __init__(self, busy: int, idle: int) -> None:
        self.counts = [0] * busy
        self._over = threading.Event()
        for at in range(busy):
            threading.Thread(target=self._step, args=(at,), name=f"busy-{at}", daemon=True).start()
        for at in range(idle):
            threading.Thread(target=self._over.wait, name=f"idle-{at}", daemon=True).start()

    def rate(self, seconds: float) -> float:
        """Steps a second over a block."""
        before, begun = sum(self.counts), time.monotonic()
        time.sleep(seconds)
        return (sum(self.counts) - before) / (time.monotonic() - begun)

    def _step(self, at: int) -> None:
        while True:
            sum(number & 3 for number in range(2_000))
            self.counts[at] += 1


def measured_block(work: Work, seconds: float) -> tuple[float, CpuRecord]:
    """One block with the evidence."""
    evidence = CpuEvidence()
    evidence.start()
    rate = work.rate(seconds)
    evidence.stop()
    return rate, evidence.record()


def run_program(name: str, pairs: int, seconds: float) -> None:
    """Print one JSON line: slow-down in per cent of each pair, and what the sampler achieved."""
    work = Work(*PROGRAMS[name])
    time.sleep(0.5)
    slower: list[float] = []
    rates: list[float] = []
    choose = random.Random(7)
    for _ in range(pairs):
        found: dict[bool, float] = {}
        for with_evidence in choose.sample([False, True], 2):
            if with_evidence:
                found[True], record = measured_block(work, seconds)
                rates += [record.stacks.rate_hz] if record.stacks is not None else [0.0]
            else:
                found[False] = work.rate(seconds)
        slower.append(100 * (found[False] / found[True] - 1))
    print(json.dumps({"slower_pct": slower, "rates_hz": rates}))


def main() -> int:
    """Run both programs; 1 when the cost of one is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--program", choices=PROGRAMS)
    options = parser.parse_args()
    if options.program:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
        run_program(options.program, options.pairs, options.seconds)
        return 0
    worst = 0.0
    for name in PROGRAMS:
        command = [sys.executable, "-m", "benchmarks.stacks_cost", "--program", name]
        command += ["--pairs", str(options.pairs), "--seconds", str(options.seconds)]
        command += ["--cores", str(options.cores)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        slower = found["slower_pct"]
        error = stdev(slower) / len(slower) ** 0.5 if len(slower) > 1 else float("inf")
        print(
            f"{name}: {median(slower):+.1f} % slower (median of {len(slower)} pairs; mean "
            f"{mean(slower):+.1f} ± {error:.1f} standard error), "
            f"stacks at {mean(found['rates_hz']):.0f} Hz"
        )
        worst = max(worst, median(slower))
    return int(worst > LIMIT_PCT)


if __name__ == "__main__":
    sys.exit(main())
