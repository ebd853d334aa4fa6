"""The watcher: ``tokbudget.watch(pipeline)`` measures a pipeline that runs itself in threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from ..analysis.rates import timing_pass
from ..errors import StallError, WorkerDiedError
from ..ports import Clock, Devices
from ..records.budget import Budget
from ..records.run import WarmUp
from .beat import (
    ALLOWED_SILENCE_NS,
    EVIDENCE,
    TIMING,
    WARM_UP,
    allowed_silence_ns,
    enter,
    until_over,
)
from .canary import Canaries
from .measurement import Measurement, collected, require_steps, used_devices, with_canaries
from .recorder import Recorder
from .stacks import thread_stacks
from .streams import Stream, living_threads
from .warmup import MAX_PASSES, WarmUpJudge
from .window import WindowCut

Floats = npt.NDArray[np.float64]

POLL_S = 0.25


def watch_pipeline(
    pipeline: object,
    recorder: Recorder,
    budget: Budget,
    devices: Devices,
    clock: Clock,
    poll_s: float = POLL_S,
) -> Measurement:
    """Wait until the pipeline is steady, then measure about ``budget.steps`` counting marks of it.

    ``pipeline`` needs nothing but marks on ``recorder``, is named in messages, and may be ``None``.
    The calling thread sleeps on a condition and looks up every ``poll_s``. Each counting worker's
    window is cut at its own marks (``WindowCut``), so the pass holds ``steps`` marks and at most
    one more for each further worker.

    Raises ``WorkerDiedError`` when a worker left by an exception (its cause) or a counting one
    ended too early; ``StallError`` with the stacks of all threads when no counting mark came for
    too long (``beat.allowed_silence_ns``); ``UsageError`` when several roles count tokens.
    """
    require_steps(budget)
    watch = Watcher(pipeline, recorder, budget, devices, clock, poll_s)
    return watch.settled(watch.run)


class Watcher:
    """Waits, looks after the workers, and has their windows cut."""

    def __init__(
        self,
        pipeline: object,
        recorder: Recorder,
        budget: Budget,
        devices: Devices,
        clock: Clock,
        poll_s: float,
    ) -> None:
        self._name = "the pipeline" if pipeline is None else type(pipeline).__qualname__
        self._recorder, self._budget = recorder, budget
        self._devices, self._clock, self._poll_s = devices, clock, poll_s
        self._judge = WarmUpJudge(budget, clock, devices)
        # On a device the pipeline keeps busy, a canary would time the pipeline.
        self._canaries = Canaries(clock, devices, on_devices=False)
        self._phase, self._phase_ns = WARM_UP, clock.monotonic_ns()
        self._began_ns = self._phase_ns
        self._median_ns: int | None = None
        self._cut: WindowCut | None = None
        self._recompilations: int | None = None
        recorder.bare_marks_count = budget.constant_tokens is not None

    def settled(self, run: Callable[[], Measurement]) -> Measurement:
        """Return what ``run()`` measures; however it ends, no worker is held nor asked for more."""
        with until_over(self._recorder.beat, self._clock):
            try:
                return run()
            finally:
                self.let_go()

    def run(self) -> Measurement:
        """Warm up and time, again where the pass was not steady."""
        for attempt in range(MAX_PASSES):
            self._enter(WARM_UP)
            unsteady = self._warm_up()
            steps = self._mark_count()
            seconds = self._judge.elapsed_s()
            in_pass = self._timed()
            reason = unsteady or in_pass
            last = attempt + 1 == MAX_PASSES or self._judge.given_up(steps)
            if not reason or last or self._judge.fixed_steps() is not None:
                warmup = WarmUp(steps=steps, seconds=seconds, steady=not reason, reason=reason)
                return self._collected(warmup)
        raise AssertionError("the last attempt returns")

    def let_go(self) -> None:
        """Ask nothing more of the workers, and hold none."""
        for stream in self._recorder.streams():
            stream.hook = None
        self._recorder.release()

    def _warm_up(self) -> str:
        """Wait until steady, or as long as asked; return why it never was steady, or ``""``."""
        fixed = self._judge.fixed_steps()
        judged = self._mark_count()
        while True:
            self._look()
            count = self._mark_count()
            self._judge.readings.take(count // max(1, len(self._counting())))
            if fixed is not None:
                if count >= max(fixed, 1):
                    return ""
                self._wake_after(max(fixed, 1))
            elif count and count >= judged + max(1, judged // 5):
                judged = count
                times = self._round_times_ms(self._began_ns, None)
                self._allow(times)
                found = self._judge.judge(times)
                if found.cut is not None:
                    return ""
                if self._judge.given_up(count):
                    return f"no steady state was found in {count} warm-up steps: {found.reason}"
            self._sleep()

    def _wake_after(self, marks: int) -> None:
        """Have the workers wake this thread at that many marks, so that the cut is not late."""

        def wake(stream: Stream, _now_ns: int) -> None:
            if sum(each.mark_count for each in counting) >= marks:
                stream.hook = None
                with self._recorder.changed:
                    self._recorder.changed.notify_all()

        counting = self._counting()
        for stream in counting:
            stream.hook = wake

    def _timed(self) -> str:
        """Have every counting worker run its window; return why it was not steady, or ``""``."""
        self._canaries.begin_pass()
        before = self._judge.readings.now()
        self._cut = cut = WindowCut(self._recorder, self._devices, self._clock, self._budget.steps)
        self._enter(TIMING)
        cut.request(self._counting())
        while cut.waiting_for():
            self._look()
            # Workers that came later than the request count, and so have windows too.
            cut.request([each for each in self._counting() if cut.reached_ns is None])
            self._sleep()
        self._canaries.end_pass()
        self._recompilations = self._judge.readings.compiled_since(before)
        start = min(each.window_ns[0] for each in self._counting() if each.window_ns)
        end = max(each.window_ns[1] for each in self._counting() if each.window_ns)
        last = max(each.times_ns()[each.window[1]] for each in self._counting() if each.window)
        rounds = self._round_times_ms(start, end)
        return self._judge.unsteady_pass(rounds, before, (end - last) / 1e6)

    def _collected(self, warmup: WarmUp) -> Measurement:
        budget = self._budget
        marks = self._recorder.mark_series(budget.token_kind, budget.constant_tokens)
        timing = replace(timing_pass(marks, budget.token_kind), recompilations=self._recompilations)
        devices = used_devices(self._recorder, self._devices)
        found = collected(self._recorder, budget, devices, warmup, timing)
        return with_canaries(found, self._canaries)

    # -- looking ----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Raise for a dead worker, for one that ended too early, and for a stall."""
        self._look_for_the_dead()
        ended = self._ended()
        if ended is not None:
            raise WorkerDiedError(self._ended_early(ended))
        self._look_for_stall()

    def _look_for_the_dead(self) -> None:
        for stream in self._recorder.streams():
            if stream.error is not None:
                raise WorkerDiedError(
                    f"worker {stream.name!r} ({stream.role or 'no role'}) of {self._name} died in "
                    f"the {self._phase_name()} by {type(stream.error).__name__}: {stream.error}"
                ) from stream.error

    def _ended(self) -> Stream | None:
        """Return a counting worker that returned although more is wanted of it."""
        threads = living_threads()
        for stream in self._counting():
            over = self._cut is not None and self._cut.closed(stream)
            if not over and not (stream.alive and stream.native_id in threads):
                return stream
        return None

    def _ended_early(self, stream: Stream) -> str:
        if self._cut is None:
            done = f"after {self._mark_count()} warm-up steps, before the timing pass"
        else:
            done = f"after {self._cut.marks} of {self._budget.steps} steps of the timing pass"
        return (
            f"the pipeline ended {done}: worker {stream.name!r} of {self._name} returned; let its "
            "workers run until the test stops them, or ask for fewer steps"
        )

    def _look_for_stall(self) -> None:
        counting = self._counting()
        if self._median_ns is None and any(stream.log for stream in counting):
            self._enter(self._phase)
        last = max([self._phase_ns, *(one.times_ns()[-1] for one in counting if one.log)])
        cut, late = self._cut, ""
        if cut is not None and cut.reached_ns is not None:
            # The others may go on for ever while one worker never comes to its last mark.
            names = ", ".join(repr(stream.name) for stream in cut.waiting_for())
            last, late = cut.reached_ns, f" of worker {names}, with all steps made by the others"
        # A stall costs only evidence there: nobody need wait for it as long as the launcher does.
        phase = TIMING if self._phase == EVIDENCE else self._phase
        allowed = allowed_silence_ns(phase, self._median_ns)
        silence = self._clock.monotonic_ns() - last
        if allowed and silence > allowed and (cut is None or cut.waiting_for()):
            raise StallError(
                f"{self._name} stalled in the {self._phase_name()}: no counting mark{late} for "
                f"{silence / 1e9:.0f} s, {allowed / 1e9:.0f} s are allowed; the threads' stacks:\n"
                f"{thread_stacks(self._recorder.streams())}"
            )

    def _sleep(self) -> None:
        with self._recorder.changed:
            self._recorder.changed.wait(self._poll_s)

    def _enter(self, phase: int) -> None:
        self._phase, self._phase_ns = phase, self._clock.monotonic_ns()
        if phase == WARM_UP:
            self._cut = None
        enter(self._recorder.beat, phase, self._phase_ns)
        if self._mark_count():
            self._allow(self._round_times_ms(None, None))

    def _allow(self, times_ms: Floats) -> None:
        """Allow as long a silence as steps of ``times_ms`` ask for."""
        self._median_ns = int(np.median(times_ms) * 1e6) if times_ms.size else 0
        allowed = allowed_silence_ns(self._phase, self._median_ns)
        self._recorder.beat[ALLOWED_SILENCE_NS] = allowed

    def _phase_name(self) -> str:
        return {TIMING: "timing pass", EVIDENCE: "evidence pass"}.get(self._phase, "warm-up")

    def _counting(self) -> list[Stream]:
        return self._recorder.counting_streams(self._budget.constant_tokens)

    def _mark_count(self) -> int:
        return sum(stream.mark_count for stream in self._counting())

    def _round_times_ms(self, start_ns: int | None, end_ns: int | None) -> Floats:
        """Return the times of rounds: as many successive counting marks as there are workers.

        One round is about one step of each worker; ``start_ns`` begins the first, marks before it
        and after ``end_ns`` are left out.
        """
        counting = [stream for stream in self._counting() if stream.log]
        times = sorted(time_ns for stream in counting for time_ns in stream.times_ns())
        if start_ns is not None:
            times = [start_ns, *(each for each in times if each > start_ns)]
        if end_ns is not None:
            times = [each for each in times if each <= end_ns]
        rounds = np.asarray(times[:: max(1, len(counting))], dtype=np.int64)
        return np.diff(rounds).astype(np.float64) / 1e6
