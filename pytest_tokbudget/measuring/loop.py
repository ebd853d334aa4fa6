"""The step loop: ``tokbudget(step)`` runs the author's step and marks when each one ended."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ..analysis.rates import step_times_ms, timing_pass
from ..errors import StepError
from ..ports import Clock, Devices, Instrument
from ..records.budget import Budget
from ..records.run import WarmUp
from .beat import TIMING, WARM_UP, enter, until_over
from .canary import Canaries
from .evidence_pass import EvidenceRunner, WorkloadEndedError
from .measurement import (
    Measurement,
    collected,
    require_steps,
    used_devices,
    with_canaries,
    with_evidence,
)
from .recorder import Recorder
from .streams import Stream
from .tokens import Tokens, checked, quickly_checked
from .warmup import MAX_PASSES, WarmUpJudge

WORKER = "step"
_FIRST_BLOCK = 10


class PassEnd(NamedTuple):
    """What preceded a timing pass, and why it was not steady, or ``""``."""

    warmup_steps: int
    warmup_s: float
    reason: str
    recompilations: int | None = None


def measure_steps(
    step: Callable[[], object],
    recorder: Recorder,
    budget: Budget,
    devices: Devices,
    clock: Clock,
    instruments: Sequence[Instrument] = (),
) -> Measurement:
    """Warm up until steady, then run and time exactly ``budget.steps`` steps.

    Every used device is synchronized at the two ends of the timing pass and, where nothing queues
    up ahead of them, at a handful of stops for the canaries (``Canaries.blocks``), whose time the
    pass leaves out; in between there is nothing but the step and its mark. ``step()`` runs one step
    and returns the tokens it consumed; with ``budget.constant_tokens`` what it returns is not
    looked at. After the timing pass each of ``instruments`` gets a window of further steps; a step
    that raises ``StopIteration`` there has run out of data, which is no failure. Raises
    ``UsageError`` when no step is asked for, ``StepError`` naming the step and the value for
    anything that is no token count; what a step raises goes on unchanged.
    """
    require_steps(budget)
    with recorder.worker(WORKER, counts=True), until_over(recorder.beat, clock):
        return StepLoop(step, recorder, budget, devices, clock).run(instruments)


class StepLoop:
    """Runs steps and cuts the timing pass out of them, in the thread that made it."""

    def __init__(
        self,
        step: Callable[[], object],
        recorder: Recorder,
        budget: Budget,
        devices: Devices,
        clock: Clock,
    ) -> None:
        self._step, self._recorder, self._budget = step, recorder, budget
        self._devices, self._clock = devices, clock
        self._stream: Stream = recorder.current()
        self._judge = WarmUpJudge(budget, clock, devices)
        self._canaries = Canaries(clock, devices)
        self._done = 0
        self._began_ns = clock.monotonic_ns()

    def run(self, instruments: Sequence[Instrument]) -> Measurement:
        """Warm up and time, again where the pass was not steady; then use ``instruments``."""
        enter(self._recorder.beat, WARM_UP, self._began_ns)
        end = PassEnd(0, 0.0, "")
        for attempt in range(MAX_PASSES):
            reason = self._warm_up()
            end = self._timed(reason)
            last = attempt + 1 == MAX_PASSES or self._judge.given_up(end.warmup_steps)
            if not end.reason or last or self._judge.fixed_steps() is not None:
                break
            enter(self._recorder.beat, WARM_UP, self._clock.monotonic_ns(), self._median_ns())
        return self._with_instruments(self._collected(end), instruments)

    # -- the evidence pass ------------------------------------------------------------------------

    def _with_instruments(
        self, measurement: Measurement, instruments: Sequence[Instrument]
    ) -> Measurement:
        """Add an evidence pass for each instrument to a measurement that was made."""
        if not instruments:
            return measurement
        runner = EvidenceRunner(self, self._recorder, self._budget, self._clock)
        windows = runner.run(instruments, self._median_ns() or 0)
        return with_evidence(measurement, windows, self._recorder, self._budget)

    @contextmanager
    def resting(self, _hold_s: float) -> Iterator[str]:
        """Between two steps nothing runs once the devices are idle."""
        self._devices.synchronize()
        yield ""

    def step_until(self, done: Callable[[], bool]) -> None:
        """Make one step after the other."""
        while not done():
            try:
                self._run(1, "evidence pass")
            except StopIteration:
                raise WorkloadEndedError from None

    def now_ns(self, at_rest: bool) -> int:
        """Now, with idle devices, or the last mark."""
        if not at_rest:
            return self._stream.times_ns()[-1]
        self._devices.synchronize()
        return self._clock.monotonic_ns()

    # -- passes -----------------------------------------------------------------------------------

    def _collected(self, end: PassEnd) -> Measurement:
        warmup = WarmUp(
            steps=end.warmup_steps,
            seconds=end.warmup_s,
            steady=not end.reason,
            reason=end.reason,
        )
        marks = [self._stream.mark_series(self._budget.token_kind, self._budget.constant_tokens)]
        timing = replace(
            timing_pass(marks, self._budget.token_kind), recompilations=end.recompilations
        )
        devices = used_devices(self._recorder, self._devices)
        found = collected(self._recorder, self._budget, devices, warmup, timing)
        return with_canaries(found, self._canaries)

    def _warm_up(self) -> str:
        """Run until steady, or as long as asked; return why it never was steady, or ``""``."""
        fixed = self._judge.fixed_steps()
        if fixed is not None:
            self._run_watched(fixed)
            return ""
        while True:
            self._run_watched(max(_FIRST_BLOCK, self._done // 3))
            found = self._judge.judge(self._times_ms())
            if found.cut is not None:
                return ""
            if self._judge.given_up(self._done):
                return f"no steady state was found in {self._done} warm-up steps: {found.reason}"

    def _run_watched(self, count: int) -> None:
        """Run warm-up steps, reading after each what could disturb a steady state."""
        beat = self._recorder.beat
        for _ in range(count):
            self._run(1, "warm-up")
            if self._done == 1:
                enter(beat, WARM_UP, self._clock.monotonic_ns(), self._median_ns())
            self._judge.readings.take(self._done)

    def _timed(self, unsteady: str) -> PassEnd:
        """Run the timing pass; return what preceded it and why it was not steady, or ``""``."""
        warmup_steps, step_ns = self._done, self._median_ns()
        used = self._devices.used()
        if len(used) == 1:
            self._stream.device = used[0]
        enter(self._recorder.beat, TIMING, self._clock.monotonic_ns(), step_ns)
        asked_ns = self._clock.monotonic_ns()
        self._devices.synchronize()
        drain_ns = self._clock.monotonic_ns() - asked_ns
        self._canaries.begin_pass()
        readings = self._judge.readings.now()
        blocks = self._canaries.blocks(self._budget.steps, step_ns or 0, drain_ns)
        start_ns = self._clock.monotonic_ns()
        self._run_blocks(blocks)
        stepped_ns = self._clock.monotonic_ns()
        self._devices.synchronize()
        end_ns = self._clock.monotonic_ns()
        self._canaries.end_pass()
        self._refuse_own_marks()
        self._stream.window = (warmup_steps - 1, self._done - 1)
        self._stream.window_ns = (start_ns, end_ns)
        self._judge.readings.take(self._done)
        series = self._stream.mark_series(self._budget.token_kind, self._budget.constant_tokens)
        drain_ms = (end_ns - stepped_ns) / 1e6
        reason = unsteady or self._judge.unsteady_pass(step_times_ms(series), readings, drain_ms)
        compiled = self._judge.readings.compiled_since(readings)
        return PassEnd(warmup_steps, (start_ns - self._began_ns) / 1e9, reason, compiled)

    def _run_blocks(self, blocks: list[int]) -> None:
        """Run the timing pass, with a stop for the canaries between two blocks."""
        self._stream.pauses_ns = []
        self._run(blocks[0], "timing pass")
        for steps in blocks[1:]:
            self._devices.synchronize()
            self._stream.pauses_ns.append(self._canaries.stop())
            self._run(steps, "timing pass")

    def _refuse_own_marks(self) -> None:
        if self._stream.mark_count != self._done:
            raise StepError(
                "the step called step_end() itself in the thread that tokbudget() marks in, so its "
                "tokens would count twice; either return them or use tokbudget.watch()"
            )

    def _run(self, count: int, phase: str) -> None:
        """Run ``count`` steps with a mark after each, and nothing else."""
        step, mark, constant = self._step, self._recorder.step_end, self._budget.constant_tokens
        if constant is not None:
            for _ in range(count):
                result = step()
                if inspect.iscoroutine(result):
                    self._refuse_coroutine(result, phase)
                mark(constant)
                self._done += 1
            return
        for _ in range(count):
            result = step()
            if type(result) is not int or result <= 0:
                mark(self._checked(result, phase))
            else:
                mark(result)
            self._done += 1

    def _checked(self, result: object, phase: str) -> Tokens:
        if inspect.iscoroutine(result):
            self._refuse_coroutine(result, phase)
        quick = quickly_checked(result)
        if quick is not None and quick.get(self._budget.token_kind):
            return quick
        where = f"step {self._done + 1} ({phase}) returned"
        return checked(result, where, self._budget.token_kind)

    def _refuse_coroutine(self, result: object, phase: str) -> None:
        if inspect.iscoroutine(result):
            # Closed, since a coroutine nobody awaits warns at some later, unrelated moment.
            result.close()
        raise StepError(
            f"step {self._done + 1} ({phase}) returned a coroutine, so it did no work; what is "
            "right: a plain function, for example one that calls loop.run_until_complete(…)"
        )

    def _times_ms(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        times = [self._began_ns, *self._stream.times_ns()]
        return np.diff(np.asarray(times, dtype=np.int64)).astype(np.float64) / 1e6

    def _median_ns(self) -> int | None:
        return int(np.median(self._times_ms()) * 1e6) if self._done else None
