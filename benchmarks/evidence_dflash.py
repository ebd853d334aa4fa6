"""The example pipeline with faults put into it: two targets, their post-process, one drafter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dflash.config import SIZES
from dflash.knobs import Knobs
from dflash.pipeline import DFlashPipeline
from dflash.stages import DrafterStage, TargetStage

from benchmarks.evidence_clock import StepClock
from benchmarks.evidence_faults import Injector
from benchmarks.evidence_held import Holdable
from pytest_tokbudget.errors import StallError
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder

DEPTH = 4
STALL_SECONDS = 60.0


class SameBatch:
    """A target that computes one batch again and again: what documents cost, and with them their
    masks, varies more from step to step than most faults do."""

    def __init__(self, target: TargetStage) -> None:
        self.device, self.warm, self.post = target.device, target.warm, target.post
        self._target = target

    def compute(self, index: int) -> Any:  # noqa: ARG002 - the protocol's name
        """Run the frozen target on batch 0."""
        return self._target.compute(0)


class Faulty(DFlashPipeline):
    """Strikes in the drafter, which limits the pipeline; ``queue`` makes the targets slower."""

    def __init__(self, injector: Injector, clock: StepClock, recorder: Recorder) -> None:
        # A queue of 60 would hide for hundreds of steps that a fault was turned on or off.
        size = SIZES["h200" if injector.cuda else "cpu"]
        super().__init__(size, Knobs(depth=DEPTH, min_ready=1, log_every=1_000_000), recorder)
        self._injector, self._clock = injector, clock

    def _start(self, targets: list[TargetStage], drafters: list[DrafterStage]) -> None:
        drafter: Any
        for drafter in drafters:
            drafter.drafter.register_forward_pre_hook(self._before)
            drafter._optimizer.register_step_post_hook(partial(self._after, drafter.drafter))
        super()._start(targets, drafters)

    def _compute(self, i: int, target: TargetStage, hand_on: Callable[[Any], None]) -> None:
        def slowly(computed: Any) -> None:
            self._injector.loader()
            hand_on(computed)

        super()._compute(i, SameBatch(target), slowly)

    def _before(self, *_: object) -> None:
        self._injector.python()
        self._injector.stream()

    def _after(self, model: Any, *_: object) -> None:
        self._injector.item(next(model.parameters()).detach().view(-1)[0])
        self._injector.copy()
        self._injector.cache()
        self._injector.sleep()
        self._clock.tick()


class DFlash(Holdable):
    """The example as the measurements see it: it runs by itself, ``run`` only waits."""

    cut_at_marks = True

    def __init__(self, injector: Injector) -> None:
        self.recorder = Recorder(SystemClock())
        self.injector = injector
        self.clock = StepClock(injector.device)
        self.settle_steps = 2 * DEPTH
        self._pipeline = Faulty(injector, self.clock, self.recorder)
        self._pipeline.__enter__()

    def run(self, steps: int) -> None:
        """Wait until the drafter has made ``steps`` more steps."""
        until = len(self.clock) + steps
        while len(self.clock) < until:
            begun = self._pipeline.progress.steps
            if self._pipeline.wait_for(begun + 1, STALL_SECONDS).steps <= begun:
                self.close()  # raises what a worker raised
                raise StallError("the pipeline was stopped")

    def close(self) -> None:
        """End all threads."""
        self._pipeline.__exit__(None, None, None)
