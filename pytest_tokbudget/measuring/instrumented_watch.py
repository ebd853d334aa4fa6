"""The watcher with an evidence pass: instruments on a pipeline that runs itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..ports import Clock, Devices, Instrument
from ..records.budget import Budget
from .beat import EVIDENCE
from .evidence_pass import EvidenceRunner, WorkloadEndedError
from .measurement import Measurement, require_steps, with_evidence
from .recorder import Recorder
from .watch import POLL_S, Watcher

EVIDENCE_POLL_S = 0.02
"""How often marks are looked at in the evidence pass; few of its windows last a second."""


def watch_with_instruments(
    pipeline: object,
    recorder: Recorder,
    budget: Budget,
    devices: Devices,
    clock: Clock,
    instruments: Sequence[Instrument],
) -> Measurement:
    """Measure as ``watch_pipeline`` does; then each of ``instruments`` gets a window, cut at marks.

    A pipeline that has ended by then, or stands still, costs only the evidence.
    """
    require_steps(budget)
    watch = InstrumentedWatcher(pipeline, recorder, budget, devices, clock, POLL_S)
    return watch.settled(lambda: watch.with_instruments(watch.run(), instruments))


class InstrumentedWatcher(Watcher):
    """A watcher that can be asked for evidence passes after its measurement."""

    def with_instruments(
        self, measurement: Measurement, instruments: Sequence[Instrument]
    ) -> Measurement:
        """Add an evidence pass for each instrument to a measurement that was made."""
        if not instruments:
            return measurement
        runner = EvidenceRunner(self, self._recorder, self._budget, self._clock)
        windows = runner.run(instruments, self._median_ns or 0)
        self._look_for_the_dead()
        return with_evidence(measurement, windows, self._recorder, self._budget)

    @contextmanager
    def resting(self, hold_s: float) -> Iterator[str]:
        """Hold all workers at their next safepoints, with the devices idle."""
        running = self._recorder.hold(None, hold_s)
        try:
            self._look_for_the_dead()
            self._devices.synchronize()
            yield running[0] if running else ""
        finally:
            self._recorder.release()

    def step_until(self, done: Callable[[], bool]) -> None:
        """Wait for the workers' marks."""
        self._phase, self._phase_ns, self._cut = EVIDENCE, self._clock.monotonic_ns(), None
        while not done():
            self._look_for_the_dead()
            if self._ended():
                raise WorkloadEndedError
            self._look_for_stall()
            with self._recorder.changed:
                self._recorder.changed.wait(min(self._poll_s, EVIDENCE_POLL_S))

    def now_ns(self, at_rest: bool) -> int:  # noqa: ARG002 - windows are cut at marks here
        """The last counting mark."""
        return max(one.times_ns()[-1] for one in self._counting() if one.log)
