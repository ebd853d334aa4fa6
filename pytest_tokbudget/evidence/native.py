"""Native stacks: the last instrument of the evidence pass, since it pauses the process.

Nothing of the other evidence rests on it. Its clock is not solved: samples are only counted.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from pytest_tokbudget.analysis.speedscope import Speedscope, read_speedscope
from pytest_tokbudget.errors import UnreadableError
from pytest_tokbudget.records.base import Unavailable

from .pyspy import NATIVE_OPTIONS, PySpy, SpyResult, find_pyspy
from .stacks import ThreadTimes, cpu_ns_of, fitting_rate_hz, thread_times

NATIVE = "native"
LEAST_NATIVE_S = 10.0
LEAST_ROUNDS = 100
MOST_NATIVE_S = 60.0
TRIAL_HZ = 20.0
TRIAL_S = 0.6
RATES_HZ = (1.0, 10.0)
PAUSED_SHARE = 0.05
"""Of the time that the process may stand still, for it does while the sampler works."""
ATTACHES_WITHIN_S = 20.0
"""It reads the symbols of every library on the stacks first."""


@dataclass(frozen=True, slots=True)
class NativeSamples:
    """Every sample of threads that seemed to run, over ``seconds`` at the ``rate_hz`` asked for,
    and the CPU time that each thread truly used meanwhile, by native id, and ``system_s`` of it in
    the kernel."""

    samples: Speedscope
    cpu_s: dict[int, float]
    system_s: dict[int, float]
    rate_hz: float
    seconds: float


class NativeStacks:
    """Stacks of native code and of the Python that called it, a few times a second."""

    name = NATIVE
    at_rest = False
    steps = 1
    most_s = MOST_NATIVE_S
    lead_in = 0

    def __init__(self, program: str | None = None) -> None:
        self._program = find_pyspy() if program is None else program
        self._spy: PySpy | None = None
        self._rate_hz = TRIAL_HZ
        self._began_ns = self._ended_ns = 0
        self._used: dict[int, ThreadTimes] = {}
        self._cpu_s: dict[int, float] = {}
        self._system_s: dict[int, float] = {}
        self._result: SpyResult | Unavailable = Unavailable("native stacks were not sampled")

    @property
    def least_s(self) -> float:
        """Long enough for ``LEAST_ROUNDS`` at the rate that ``begin`` found, or ``most_s``."""
        return min(max(LEAST_NATIVE_S, LEAST_ROUNDS / self._rate_hz), MOST_NATIVE_S)

    def begin(self) -> Unavailable | None:
        """Try out what a round costs with this many threads, then sample at the rate that fits.

        Takes 2 s, and more where large libraries are loaded, whose symbols py-spy reads twice.
        """
        if self._program is None:
            return Unavailable("py-spy is not installed", "pip install py-spy")
        try:
            refused = self._start(TRIAL_HZ)
            if refused is None:
                refused = self._start(self._fitting_hz())
        except BaseException:  # interrupted: leave nothing behind
            self._stop()
            raise
        return refused

    def end(self, running: str = "") -> None:  # noqa: ARG002 - the port's; nothing has to stand
        """End the sampler and take what it wrote."""
        self._stop()

    def record(self) -> NativeSamples | Unavailable:
        """The samples; what went wrong, where there are none."""
        if isinstance(self._result, Unavailable):
            return self._result
        try:
            samples = read_speedscope(self._result.trace)
        except UnreadableError as error:
            return Unavailable(str(error))
        seconds = (self._ended_ns - self._began_ns) / 1e9
        return NativeSamples(samples, self._cpu_s, self._system_s, self._rate_hz, seconds)

    def _start(self, rate_hz: float) -> Unavailable | None:
        """Sample at ``rate_hz`` from now on."""
        assert self._program is not None
        self._stop()
        self._rate_hz = float(max(1, round(rate_hz)))
        spy = PySpy(self._program, os.getpid(), self._rate_hz, NATIVE_OPTIONS)
        refused = spy.start()
        if refused is not None:
            return refused
        self._spy = spy
        spy.wait_attached(ATTACHES_WITHIN_S)
        self._began_ns, self._used = time.monotonic_ns(), thread_times(os.getpid())
        if not spy.has_ended:
            return None
        self._stop()
        ended = Unavailable("py-spy ended by itself")
        return self._result if isinstance(self._result, Unavailable) else ended

    def _fitting_hz(self) -> float:
        """The rate at which the rounds of the sampler that runs take ``PAUSED_SHARE``."""
        assert self._spy is not None
        pid = self._spy.pid
        before = cpu_ns_of(pid)
        time.sleep(TRIAL_S)
        after = cpu_ns_of(pid)
        if before is None or after is None:
            return RATES_HZ[0]
        cost_ns = max(after - before, 1) / (TRIAL_HZ * TRIAL_S)
        return fitting_rate_hz(cost_ns, PAUSED_SHARE, RATES_HZ)

    def _stop(self) -> None:
        if self._spy is None:
            return
        self._ended_ns = time.monotonic_ns()
        self._cpu_s, self._system_s = {}, {}
        for thread, used in thread_times(os.getpid()).items():
            before = self._used.get(thread, ThreadTimes())
            self._cpu_s[thread] = (used.cpu_ns - before.cpu_ns) / 1e9
            self._system_s[thread] = (used.system_ns - before.system_ns) / 1e9
        self._result = self._spy.stop()
        self._spy = None
