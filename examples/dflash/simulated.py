"""Simulated devices: timed waits that release the GIL, as a kernel's launcher does.

Every device has a timeline. Work begins when the device is free and its input is there, and the
host then sleeps until it ends; a host that wakes late does not delay the device, as long as it is
not later than launches run ahead. So sleeping too long never adds up, and the schedule of durations
is fixed by a seed.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from .config import Timing
from .disturbances import CorrelatedStall
from .stages import DrafterStage, TargetStage, Trained, Workshop

RUN_AHEAD_NS = 15_000_000
TARGET_STALL_MS = 400.0


class Timeline:
    """One device. Used by one thread at a time."""

    def __init__(self) -> None:
        self.free_ns = 0

    def run(self, duration_ms: float, ready_ns: int = 0) -> int:
        """Occupy the device for ``duration_ms`` from when it is free and ``ready_ns`` is past.

        Returns when that ends, in monotonic ns, once it has.
        """
        start = max(self.free_ns, ready_ns, time.monotonic_ns() - RUN_AHEAD_NS)
        self.free_ns = start + round(duration_ms * 1e6)
        while (left := self.free_ns - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)
        return self.free_ns


def target_schedule(timing: Timing, worker: int) -> list[float]:
    """Return one cycle of a target's step times in ms, always the same for the same worker.

    ``long_every`` steps: one is long, the others spread evenly over mean ± spread, shuffled. Every
    cycle takes equally long, so that where a window is cut hardly matters.
    """
    chooser = random.Random(f"dflash target {worker}")
    others = timing.long_every - 1
    steps = [
        timing.target_ms * (1 + timing.target_spread * (2 * (i + 0.5) / others - 1))
        for i in range(others)
    ]
    steps.append(timing.target_ms * timing.long_factor)
    chooser.shuffle(steps)
    return steps


@dataclass(frozen=True)
class SimulatedStates:
    """A batch of hidden states that are there from ``ready_ns`` on."""

    index: int
    ready_ns: int


class SimulatedTarget:
    """A target whose steps follow its schedule."""

    def __init__(
        self, workshop: Workshop, timing: Timing, worker: int, stall: CorrelatedStall
    ) -> None:
        self.device = f"sim:{worker}"
        self._timing, self._knobs, self._stall = timing, workshop.knobs, stall
        self._compute, self._copy = Timeline(), Timeline()
        self._schedule = target_schedule(timing, worker)
        self._steps = 0

    def warm(self) -> None:
        """Nothing is compiled here."""

    def compute(self, index: int) -> SimulatedStates:
        """Occupy the device for the next step of the schedule and what the knobs add."""
        knobs, timing = self._knobs, self._timing
        duration = self._schedule[self._steps % len(self._schedule)]
        self._steps += 1
        duration += timing.docids_ms * (knobs.docids == "python_loop")
        duration += timing.churn_ms * (knobs.alloc == "churn")
        duration += timing.unpinned_ms * (knobs.pin == "no")
        end = self._compute.run(duration, self._stall.resume_ns)
        self._stall.step_ended(end)
        return SimulatedStates(index, end)

    def post(self, computed: SimulatedStates) -> SimulatedStates:
        """Occupy the copy engine; with ``post=sync`` the device itself."""
        engine = self._compute if self._knobs.post == "sync" else self._copy
        return SimulatedStates(computed.index, engine.run(self._timing.post_ms, computed.ready_ns))


class SimulatedDrafter:
    """A drafter whose steps all take the same time, except for checkpoints."""

    def __init__(
        self, workshop: Workshop, timing: Timing, device: str, checkpoint: CorrelatedStall
    ) -> None:
        self.device = device
        self._timing, self._checkpoint = timing, checkpoint
        self._size, self._knobs, self._log = workshop.size, workshop.knobs, workshop.log
        self._timeline = Timeline()

    def warm(self, item: SimulatedStates) -> None:
        """Nothing is compiled here."""

    def step_ms(self, step: int) -> float:
        """Return how long step ``step`` occupies the device, without its ``.item()`` calls."""
        knobs, timing = self._knobs, self._timing
        duration = timing.drafter_ms + timing.mask_ms * (knobs.masks - 1)
        duration += timing.eager_mask_ms * knobs.masks * (knobs.mask == "eager")
        duration += timing.recompile_ms * (knobs.anchors == "variable" and step > 1)
        return duration + timing.churn_ms * (knobs.alloc == "churn")

    def train(self, item: SimulatedStates, step: int) -> Trained:
        """Occupy the device for one step; every token is real here."""
        ready = max(item.ready_ns, self._checkpoint.resume_ns)
        end = self._timeline.run(self.step_ms(step), ready)
        if self._knobs.sync == "each":
            for _ in range(4):
                end = self._timeline.run(self._timing.item_ms)
        self._checkpoint.step_ended(end)
        if self._log.is_due(step):
            self._log.write(f"{self.device} step {step}")
        size = self._size
        draft = size.anchors * size.block
        loss = size.anchors * (size.block - 1)
        return Trained({"slots": size.slots, "real": size.slots, "loss": loss, "draft": draft})


def build_simulated(
    workshop: Workshop, timing: Timing
) -> tuple[list[TargetStage], list[DrafterStage]]:
    """Return all stages, each on a device of its own."""
    size = workshop.size
    stall = CorrelatedStall(workshop.knobs.stall_every * size.targets, TARGET_STALL_MS)
    checkpoint = CorrelatedStall(timing.stall_every * size.drafters, timing.stall_ms)
    targets: list[TargetStage] = [
        SimulatedTarget(workshop, timing, i, stall) for i in range(size.targets)
    ]
    drafters: list[DrafterStage] = [
        SimulatedDrafter(workshop, timing, f"sim:{size.targets + i}", checkpoint)
        for i in range(size.drafters)
    ]
    return targets, drafters
