"""What a fault costs, unprofiled: paired, alternating blocks (ABBA) of one running workload."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from benchmarks.evidence_clock import Canary, StepClock
from benchmarks.evidence_faults import Injector

BLOCK_STEPS = 12
LEAST_QUADS = 4
TARGET_ERROR = 0.03
TARGET_ERROR_MS = 0.05


class Runnable(Protocol):
    """A workload as the measurements see it."""

    injector: Injector
    clock: StepClock
    settle_steps: int

    def run(self, steps: int) -> None:
        """Make ``steps`` steps."""
        ...

    def held(self) -> AbstractContextManager[Sequence[str]]:
        """Nobody touches the device inside."""
        ...


@dataclass
class Truth:
    """``blocks``: (fault on, mean ms a step) in the order measured. ``cost_ms`` ± ``error_ms`` (one
    standard error over quads ABBA). ``canary_ms``: the canary between the quads."""

    fault: str
    cost_ms: float = 0.0
    error_ms: float = 0.0
    reference_ms: float = 0.0
    blocks: list[tuple[int, float]] = field(default_factory=list)
    canary_ms: list[float] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def measure_truth(
    workload: Runnable, fault: str, canary: Canary, seconds: float, block_steps: int = BLOCK_STEPS
) -> Truth:
    """Alternate none, fault, fault, none until the error is 3 % of the cost, or time is up.

    An error of ``TARGET_ERROR_MS`` is enough too: what costs nothing has no share of its cost.
    """
    truth = Truth(fault)
    costs: list[float] = []
    until = time.monotonic() + seconds
    while True:
        with workload.held():
            begin, end = canary.run()
        truth.canary_ms.append((end - begin) / 1e6)
        means = [_block(workload, fault if on else "none", block_steps) for on in (0, 1, 1, 0)]
        truth.blocks += list(zip((0, 1, 1, 0), means))
        costs.append((means[1] + means[2] - means[0] - means[3]) / 2)
        truth.cost_ms = float(np.mean(costs))
        truth.error_ms = (
            float(np.std(costs, ddof=1) / np.sqrt(len(costs))) if len(costs) > 1 else float("inf")
        )
        settled = len(costs) >= LEAST_QUADS
        if settled and truth.error_ms <= max(TARGET_ERROR * abs(truth.cost_ms), TARGET_ERROR_MS):
            break
        if time.monotonic() > until and len(costs) >= 2:
            break
    truth.reference_ms = float(np.mean([mean for on, mean in truth.blocks if not on]))
    workload.injector.active = "none"
    return truth


def _block(workload: Runnable, fault: str, steps: int) -> float:
    workload.injector.active = fault
    workload.run(workload.settle_steps)
    begin = len(workload.clock)
    workload.run(steps)
    return float(np.mean(workload.clock.take(begin, begin + steps)))
