"""The watcher of an A/B: a pipeline that runs itself, held at its safepoints between blocks."""

from __future__ import annotations

import itertools
import threading

import numpy as np

from ..errors import MeasureError
from ..ports import Clock, Devices, Pacer
from ..records.budget import Budget
from ..records.run import WarmUp
from .beat import SETUP, TIMING, WARM_UP, enter
from .instrumented_watch import InstrumentedWatcher
from .measurement import Measurement, require_steps
from .paced_loop import Turns
from .recorder import Recorder
from .streams import Stream

HOLD_S = 10.0
"""How long a worker may take to come to a mark or a queue call."""
POLL_S = 0.25


def watch_in_turn(
    pipeline: object,
    recorder: Recorder,
    budget: Budget,
    devices: Devices,
    clock: Clock,
    turns: Turns,
) -> Measurement:
    """Measure a pipeline as ``watch.watch_pipeline`` does, in blocks, when ``turns.pacer`` says so.

    A block ends at the counting mark that completes it: the marking worker stands there, the others
    at their next safepoints, and the devices are synchronized. Where a worker comes to none within
    ``HOLD_S`` the pacer is told that this workload cannot be held. Raises what ``watch_pipeline``
    raises, and ``MeasureError`` when the A/B was broken off.
    """
    require_steps(budget)
    watch = _PacedWatcher(pipeline, recorder, budget, devices, clock, POLL_S)
    return watch.settled(
        lambda: watch.with_instruments(watch.run_paced(turns.pacer), turns.instruments)
    )


class _PacedWatcher(InstrumentedWatcher):
    _lock = threading.Lock()
    """Between the end of the measurement and a worker that is just completing a block."""
    _over = False

    def let_go(self) -> None:
        """As any watcher; a worker inside its hook must not ask for a hold after this."""
        with self._lock:
            self._over = True
        super().let_go()

    def run_paced(self, pacer: Pacer) -> Measurement:
        """Warm up and run blocks when told; hold every worker in between."""
        self._hold(pacer)
        pacer.await_warm_up()
        self._began_ns = self._clock.monotonic_ns()
        self._enter(WARM_UP)
        self._recorder.release()
        unsteady = self._warm_up()
        warmup_s = (self._clock.monotonic_ns() - self._began_ns) / 1e9
        self._hold(pacer)
        steps, readings = self._mark_count(), self._judge.readings.now()
        rounds_ms = self._round_times_ms(self._began_ns, None)
        pacer.warmed_up(int(np.median(rounds_ms) * 1e6) if rounds_ms.size else 0)
        before = {id(stream): stream.mark_count for stream in self._counting()}
        blocks: list[tuple[int, int]] = []
        while wanted := pacer.next_block():
            blocks.append(self._block(wanted * len(self._counting())))
            pacer.block_done(wanted, blocks[-1][1] - blocks[-1][0])
        if not blocks:
            raise MeasureError("the A/B ended before a step of the timing pass was made")
        self._cut_windows(before, blocks)
        self._recompilations = self._judge.readings.compiled_since(readings)
        reason = unsteady or self._judge.readings.disturbed_since(readings)
        found = self._collected(
            WarmUp(steps=steps, seconds=warmup_s, steady=not reason, reason=reason)
        )
        self._recorder.release()
        return found

    def _hold(self, pacer: Pacer) -> None:
        """Hold all workers, with nothing queued on the devices."""
        running = self._recorder.hold(None, HOLD_S)
        if running:
            pacer.cannot(f"worker {running[0]!r} came to no mark or queue call for {HOLD_S:.0f} s")
        self._rest()

    def _rest(self) -> None:
        self._devices.synchronize()
        enter(self._recorder.beat, SETUP, self._clock.monotonic_ns())

    def _block(self, marks: int) -> tuple[int, int]:
        """Let the workers make ``marks`` counting marks; return when that began and ended."""
        recorder, me = self._recorder, threading.get_ident()
        goal = self._mark_count() + marks

        def count(_stream: Stream, _now_ns: int) -> None:
            if self._mark_count() >= goal:
                with self._lock:
                    if not self._over:
                        recorder.hold_soon(me)
                with recorder.changed:
                    recorder.changed.notify_all()

        for stream in self._counting():
            stream.hook = count
        self._enter(TIMING)
        start_ns = self._clock.monotonic_ns()
        recorder.release()
        while not self._reached(goal):
            self._look()
        running = recorder.hold(None, HOLD_S)
        for stream in self._counting():
            stream.hook = None
        self._look()
        if running:
            raise MeasureError(
                f"worker {running[0]!r} came to no mark or queue call for {HOLD_S:.0f} s, so the "
                "A/B cannot hold it"
            )
        self._devices.synchronize()
        end_ns = self._clock.monotonic_ns()
        self._rest()
        return start_ns, end_ns

    def _reached(self, goal: int) -> bool:
        """Wait for the mark that completes a block; whoever makes it wakes this thread."""
        with self._recorder.changed:
            return self._recorder.changed.wait_for(
                lambda: self._mark_count() >= goal, timeout=self._poll_s
            )

    def _cut_windows(self, before: dict[int, int], blocks: list[tuple[int, int]]) -> None:
        pauses = [(one[1], next_one[0]) for one, next_one in itertools.pairwise(blocks)]
        for stream in self._counting():
            first = before.get(id(stream), 0) - 1
            stream.window = (first, stream.mark_count - 1)
            stream.window_ns = (blocks[0][0], blocks[-1][1])
            stream.pauses_ns = list(pauses)
