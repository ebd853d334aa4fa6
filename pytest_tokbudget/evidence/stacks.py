"""Samples the stacks of this process from another one, and puts them on this process's clock."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_tokbudget.analysis.chrometrace import read_chrometrace
from pytest_tokbudget.analysis.sampled_stacks import Sampling, sampled_stacks
from pytest_tokbudget.errors import UnreadableError
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.cpu import SampledStacks

from .beacon import Beacon, beacon_a, beacon_b
from .pyspy import REMEDY, PySpy, SpyResult, find_pyspy
from .thread_sampler import TICK_NS, stat_ticks

TRIAL_HZ = 20.0
TRIAL_S = 0.6
ATTACHES_WITHIN_S = 5.0
RATES_HZ = (4.0, 100.0)
LEAST_SEEN = 0.25
"""Of the time between the sampler's start and its end."""
CPU_SHARE = 0.07
"""What the sampler may use of one core: with the 2 % of the process that reads the threads' clocks
4.5 % of two cores, for a program that keeps both busy."""


class StackSampler:
    """``start``, then ``stop``, then ``record``, which may wait until the workload has ended.

    ``beacon`` must run from before ``start`` until after ``stop``.
    """

    def __init__(self, beacon: Beacon, program: str | None = None) -> None:
        self._beacon = beacon
        self._program = find_pyspy() if program is None else program
        self._spy: PySpy | None = None
        self._rate_hz = TRIAL_HZ
        self._round_ns = 0
        self._clock: tuple[int, int] = (0, 0)
        self._failed: Unavailable | None = None
        self._result: SpyResult | Unavailable = Unavailable("stacks were not sampled")
        self._ended_ns = 0
        self._own_cpu_pct: float | None = None

    def start(self) -> None:
        """Try out what a round costs with this many threads, then sample at the rate that fits.

        Takes about a second. What goes wrong is told by ``stop``.
        """
        if self._program is None:
            self._failed = Unavailable("py-spy is not installed", "pip install py-spy")
            return
        self._begin(TRIAL_HZ)
        cost_ns = self._cost_of_a_round_ns()
        if self._failed is not None or cost_ns is None:
            return
        self._round_ns = cost_ns
        self._begin(fitting_rate_hz(cost_ns))

    def stop(self) -> None:
        """End the sampler and take what it wrote; the process is gone when this returns."""
        if self._spy is None:
            return
        used = None if self._spy.has_ended else cpu_ns_of(self._spy.pid)
        elapsed = time.monotonic_ns() - self._clock[0]
        self._own_cpu_pct = used and 100 * (used - self._clock[1]) / max(elapsed, 1)
        self._result = self._spy.stop()
        self._ended_ns = time.monotonic_ns()

    def record(
        self, lifetimes_ns: Mapping[int, tuple[int, int]] | None = None
    ) -> SampledStacks | Unavailable:
        """The stacks on this process's clock; ``lifetimes_ns`` as in ``Sampling``."""
        result = self._failed or self._result
        if isinstance(result, Unavailable):
            return result
        assert self._spy is not None
        try:
            raw = read_chrometrace(result.trace)
        except UnreadableError as error:
            return Unavailable(str(error))
        if not raw.runs:
            return Unavailable("py-spy sampled nothing", "measure for longer")
        found = sampled_stacks(
            raw,
            Sampling(
                beacon_ns=list(self._beacon.entered_ns),
                beacon_id=self._beacon.native_id,
                markers=(beacon_a.__name__, beacon_b.__name__),
                bounds_ns=(self._spy.spawned_ns, self._ended_ns),
                asked_hz=self._rate_hz,
                samples=result.samples,
                errors=result.errors,
                sampler=_version(self._program or ""),
                round_ns=self._round_ns,
                own_cpu_pct=self._own_cpu_pct,
                lifetimes_ns=lifetimes_ns,
            ),
        )
        wanted_s = (self._ended_ns - self._spy.spawned_ns) / 1e9
        if found.seconds < LEAST_SEEN * wanted_s:
            return Unavailable(
                f"py-spy saw this process for {found.seconds:.1f} s of {wanted_s:.1f} s alone",
                f"measure again; where it lost the right to look, {REMEDY}",
            )
        return msgspec.structs.replace(found, source=source_lines(found))

    def _begin(self, rate_hz: float) -> None:
        assert self._program is not None
        self._rate_hz = float(max(1, round(rate_hz)))
        self._spy = PySpy(self._program, os.getpid(), self._rate_hz)
        self._failed = self._spy.start()
        if self._failed is not None:
            self._spy = None
            return
        self._clock = (time.monotonic_ns(), 0)
        # It reads the symbols of the interpreter first, which takes CPU time of its own.
        self._spy.wait_attached(ATTACHES_WITHIN_S)
        self._clock = (time.monotonic_ns(), cpu_ns_of(self._spy.pid) or 0)

    def _cost_of_a_round_ns(self) -> int | None:
        """CPU time of one round over all threads, from a short trial; ``None`` if it ended."""
        trial = self._spy
        if trial is None:
            return None
        time.sleep(TRIAL_S)
        used = cpu_ns_of(trial.pid)
        if trial.has_ended or used is None:
            return None
        found = trial.stop()
        if isinstance(found, Unavailable):
            self._failed, self._spy = found, None
            return None
        # Its own count, for where cores are short it makes fewer rounds than it was asked for.
        rounds = found.samples / max(len(sys._current_frames()), 1)
        return max(round((used - self._clock[1]) / max(rounds, 1.0)), 1)


def source_lines(stacks: SampledStacks) -> list[str]:
    """The text of the lines that were innermost in any stack; ``""`` for the others."""
    innermost = {one[-1] for one in stacks.stacks}
    return [
        linecache.getline(file, line).strip() if at in innermost else ""
        for at, (_, file, line) in enumerate(stacks.frames)
    ]


def fitting_rate_hz(
    round_cost_ns: float, share: float = CPU_SHARE, rates_hz: tuple[float, float] = RATES_HZ
) -> float:
    """The rate at which rounds of this cost take ``share`` of a core, within ``rates_hz``."""
    low, high = rates_hz
    return min(max(share * 1e9 / round_cost_ns, low), high)


def cpu_ns_of(pid: int) -> int | None:
    """CPU time of all threads of a process so far; ``None`` once it has ended."""
    used = thread_times(pid)
    return sum(one.cpu_ns for one in used.values()) if used else None


class ThreadTimes(NamedTuple):
    """CPU time of a thread so far, and what of it was in the kernel, to a hundredth of a second."""

    cpu_ns: int = 0
    system_ns: int = 0


def thread_times(pid: int) -> dict[int, ThreadTimes]:
    """Those of each thread of a process, by native id; empty once it has ended."""
    used = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError, IndexError, ValueError):  # a thread may end while we look
            ticks = stat_ticks((task / "stat").read_text())
            user, system = (one * TICK_NS for one in ticks[:2])
            cpu_ns = max(_schedstat_ns(task) or 0, user + system)
            used[int(task.name)] = ThreadTimes(cpu_ns, system)
    return used


def _schedstat_ns(task: Path) -> int | None:
    try:
        return int((task / "schedstat").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return None


def _version(program: str) -> str:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return "py-spy"
    return done.stdout.strip() or "py-spy"
