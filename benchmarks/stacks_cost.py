"""What the CPU evidence costs the program it looks at: paired blocks with and without it.

    python -m benchmarks.stacks_cost [--pairs 8] [--seconds 3] [--cores 2]

Two programs, each in a process of its own bound to ``--cores`` cores: twelve busy Python threads,
and one working thread beside 150 idle ones. A pair is one block without and one with the evidence,
in random order; starting, stopping and reading it lies outside the blocks, and the threads rest
there: twelve that hold the GIL make every call of this one last tenths of a second. On a machine
with other load the wall clock says little; steps per second of the program's own CPU time then show
what the evidence does to it directly, and the sampler's share of a core what it takes from it where
cores are full.
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
    """Threads that count the steps they make; they rest outside the blocks."""

    def __init__(self, busy: int, idle: int) -> None:
        self.counts = [0] * busy
        self._over = threading.Event()
        self._running = threading.Event()
        for at in range(busy):
            threading.Thread(target=self._step, args=(at,), name=f"busy-{at}", daemon=True).start()
        for at in range(idle):
            threading.Thread(target=self._over.wait, name=f"idle-{at}", daemon=True).start()

    def rates(self, seconds: float) -> tuple[float, float]:
        """Steps a second over a block, and steps a second of this process's CPU time."""
        self._running.set()
        before, begun, used = sum(self.counts), time.monotonic(), time.process_time()
        time.sleep(seconds)
        steps = sum(self.counts) - before
        rates = steps / (time.monotonic() - begun), steps / (time.process_time() - used)
        self._running.clear()
        return rates

    def _step(self, at: int) -> None:
        while self._running.wait():
            sum(number & 3 for number in range(2_000))
            self.counts[at] += 1


def measured_block(work: Work, seconds: float) -> tuple[tuple[float, float], CpuRecord]:
    """One block with the evidence."""
    evidence = CpuEvidence()
    evidence.start()
    rates = work.rates(seconds)
    evidence.stop()
    return rates, evidence.record()


def run_program(name: str, pairs: int, seconds: float) -> None:
    """Print one JSON line: slow-down in per cent of each pair, and what the sampler did."""
    work = Work(*PROGRAMS[name])
    time.sleep(0.5)
    found: dict[str, list[float]] = {"wall": [], "cpu": [], "hz": [], "sampler": []}
    choose = random.Random(7)
    for _ in range(pairs):
        rates: dict[bool, tuple[float, float]] = {}
        for with_evidence in choose.sample([False, True], 2):
            if not with_evidence:
                rates[False] = work.rates(seconds)
                continue
            rates[True], record = measured_block(work, seconds)
            if record.stacks is not None:
                found["hz"].append(record.stacks.rate_hz)
                found["sampler"].append(record.stacks.own_cpu_pct or 0.0)
        for at, kind in enumerate(("wall", "cpu")):
            found[kind].append(100 * (rates[False][at] / rates[True][at] - 1))
    print(json.dumps(found))


def shown(slower: list[float]) -> str:
    """Median and standard error of the mean."""
    error = stdev(slower) / len(slower) ** 0.5 if len(slower) > 1 else float("inf")
    return f"{median(slower):+.1f} % (mean {mean(slower):+.1f} ± {error:.1f})"


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
        print(
            f"{name}, {len(found['wall'])} pairs: slower by {shown(found['wall'])}; per second of "
            f"its own CPU time by {shown(found['cpu'])}; py-spy took "
            f"{mean(found['sampler'] or [0.0]):.0f} % of a core "
            f"at {mean(found['hz'] or [0.0]):.0f} Hz",
            flush=True,
        )
        worst = max(worst, median(found["wall"]))
    return int(worst > LIMIT_PCT)


if __name__ == "__main__":
    sys.exit(main())
