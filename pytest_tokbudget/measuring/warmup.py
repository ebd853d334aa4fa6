"""Decides, while the workload warms up, when it is steady, and afterwards whether it stayed so."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..analysis.steady import (
    MIN_TAIL_STEPS,
    Steady,
    change_point,
    find_steady,
    material_to_mean,
    queued_ahead,
)
from ..ports import Clock, Devices
from ..records.budget import Budget
from .beat import SECOND_NS
from .devices import recompilations

MAX_PASSES = 3
"""Timing passes until one is steady. The last one is kept, steady or not."""

_BOUND_NS = 60 * SECOND_NS
_BOUND_PASSES = 3
_TAIL_MS = 1000.0


class Readings:
    """Cumulative readings of what disturbs a steady state, taken after some of the steps."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._steps: list[int] = []
        self._compiled: list[int] = []
        self._reserved: list[int] = []

    def take(self, steps: int) -> None:
        """Read now, ``steps`` steps having ended."""
        self._steps.append(steps)
        self._compiled.append(recompilations() or 0)
        self._reserved.append(self._devices.reserved_bytes())

    def per_step(self, steps: int) -> tuple[list[int], list[int]]:
        """Return compilations and reserved bytes after each of ``steps`` steps.

        Between two readings the earlier one stands, so that an event counts as late as it may be.
        """
        chosen = [max(0, bisect.bisect_right(self._steps, step + 1) - 1) for step in range(steps)]
        return [self._compiled[i] for i in chosen], [self._reserved[i] for i in chosen]

    def disturbed_since(self, mark: tuple[int, int]) -> str:
        """Say what happened since ``mark`` (an earlier ``now()``); ``""`` when nothing did."""
        compiled, reserved = self.now()
        if compiled > mark[0]:
            return f"code was compiled {compiled - mark[0]} times in the timing pass"
        if reserved - mark[1] > 0.01 * reserved:
            grown = (reserved - mark[1]) / 2**20
            return f"{grown:,.0f} MiB of device memory were newly reserved in the timing pass"
        return ""

    def compiled_since(self, mark: tuple[int, int]) -> int:
        """Return how many frames were compiled since ``mark`` (an earlier ``now()``)."""
        return self.now()[0] - mark[0]

    def now(self) -> tuple[int, int]:
        """Return compilations and reserved bytes at this moment."""
        return recompilations() or 0, self._devices.reserved_bytes()


class WarmUpJudge:
    """Says when the warm-up is over: steady, long enough as asked, or given up.

    Steady asks for a tail of unchanging steps that lasts a second or is as long as the timing pass.
    It is given up after three times the steps of the timing pass, yet not before 60 s.
    """

    def __init__(self, budget: Budget, clock: Clock, devices: Devices) -> None:
        self._budget, self._clock = budget, clock
        self._started_ns = clock.monotonic_ns()
        self.readings = Readings(devices)

    def fixed_steps(self) -> int | None:
        """Return the warm-up steps that the author asked for, if any."""
        return self._budget.warmup_steps

    def judge(self, step_ms: Sequence[float] | npt.NDArray[np.float64]) -> Steady:
        """Return whether the steps so far end in a steady state that is long enough."""
        times = np.asarray(step_ms, dtype=np.float64)
        shortest = max(5, min(MIN_TAIL_STEPS, self._budget.steps // 2))
        compiled, reserved = self.readings.per_step(times.size)
        found = find_steady(
            times,
            self._budget.tolerance,
            recompilations=compiled,
            reserved_bytes=reserved,
            min_tail=shortest,
        )
        if found.cut is None:
            return found
        tail = times[found.cut :]
        if tail.size < self._budget.steps and float(tail.sum()) < _TAIL_MS:
            return Steady(None, "the steps were steady for less than a second")
        return found

    def given_up(self, steps: int) -> bool:
        """Return whether ``steps`` steps of looking for a steady state were enough."""
        elapsed = self._clock.monotonic_ns() - self._started_ns
        return steps >= _BOUND_PASSES * self._budget.steps and elapsed >= _BOUND_NS

    def unsteady_pass(
        self,
        step_ms: Sequence[float] | npt.NDArray[np.float64],
        before: tuple[int, int],
        drain_ms: float,
    ) -> str:
        """Say why a timing pass was not steady; ``""`` when it was.

        ``before``: ``readings.now()`` at its start. ``drain_ms``: how long the devices still worked
        after the last step.
        """
        disturbed = self.readings.disturbed_since(before)
        if disturbed:
            return disturbed
        ahead = queued_ahead(step_ms, drain_ms)
        change = change_point(step_ms[ahead:], self._budget.tolerance)
        if change is None:
            return ""
        if not material_to_mean(change, len(step_ms) - ahead, self._budget.tolerance):
            return ""
        return f"in the timing pass {change._replace(at=change.at + ahead)}"

    def elapsed_s(self) -> float:
        """Return the seconds since the warm-up began."""
        return (self._clock.monotonic_ns() - self._started_ns) / 1e9
