"""The evidence pass where something fails: the reason is kept, and nobody stays held."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pytest_tokbudget.errors import MeasureError, WorkerDiedError
from pytest_tokbudget.measuring import paced_watch
from pytest_tokbudget.measuring.beat import ALLOWED_SILENCE_NS, EVIDENCE, PHASE, SECOND_NS
from pytest_tokbudget.measuring.evidence_pass import (
    HOLD_AFTER_ERROR_S,
    HOLD_S,
    NO_STEP,
    EvidenceRunner,
    EvidenceWindows,
)
from pytest_tokbudget.measuring.measurement import NOT_MEASURED
from pytest_tokbudget.measuring.paced_loop import Turns
from pytest_tokbudget.measuring.paced_watch import watch_in_turn
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeClock, FakeInstrument

from .pacers import FakePacer
from .test_evidence_pass import measured, watched
from .test_loop import Bench
from .test_watch import Pipeline, pipeline

__all__ = ["pipeline"]


class Scripted:
    """A workload of one worker, which stands or does not as ``running`` says, hold by hold."""

    def __init__(self, *running: str, error: BaseException | None = None) -> None:
        self.clock = FakeClock()
        self.recorder = Recorder(self.clock)
        self.holds_s: list[float] = []
        self._running, self._error = list(running), error

    @contextmanager
    def resting(self, hold_s: float) -> Iterator[str]:
        self.holds_s.append(hold_s)
        yield self._running.pop(0)

    def step_until(self, done: Callable[[], bool]) -> None:
        if self._error is not None:
            raise self._error
        while not done():
            self.clock.advance(0.01)
            self.recorder.step_end(5)

    def now_ns(self, at_rest: bool) -> int:
        assert at_rest
        return self.clock.monotonic_ns()

    def run(self, *instruments: FakeInstrument) -> EvidenceWindows:
        with self.recorder.worker("w", counts=True):
            runner = EvidenceRunner(self, self.recorder, Budget(steps=5), self.clock)
            return runner.run(instruments, 10_000_000)


def test_a_hold_is_short_once_somebody_wants_the_test_to_end() -> None:
    workload, probe = Scripted("", "", error=KeyboardInterrupt()), FakeInstrument(at_rest=True)

    with pytest.raises(KeyboardInterrupt):
        workload.run(probe)

    assert workload.holds_s == [HOLD_S, HOLD_AFTER_ERROR_S]
    assert probe.calls == ["begin", "end"]


def test_a_worker_that_does_not_stand_for_the_start_is_the_reason() -> None:
    probe = FakeInstrument(at_rest=True)

    found = Scripted("loader").run(probe)

    assert "worker 'loader' came to no mark or queue call for 10 s" in found.unavailable["probe"]
    assert found.windows == {}
    assert probe.calls == []


def test_a_worker_that_does_not_stand_for_the_end_takes_the_window_away() -> None:
    probe, other = FakeInstrument(at_rest=True), FakeInstrument("other", at_rest=True)

    found = Scripted("", "loader", "", "").run(probe, other)

    assert "'loader'" in found.unavailable["probe"]
    assert list(found.windows) == ["other"]
    assert probe.calls[1].startswith("end worker 'loader'")


def test_the_reason_stays_where_no_instrument_ran() -> None:
    refused = FakeInstrument("refused")
    refused.refusal = Unavailable("not here")

    found = measured(Bench(), refused)

    assert found.unavailable["ledger"] == found.unavailable["hot_frames"] == NOT_MEASURED
    assert found.unavailable["refused"] == "not here"


def test_an_interrupted_step_ends_the_instrument_and_goes_on() -> None:
    bench, probe = Bench(), FakeInstrument()

    def step() -> object:
        if bench.count == 60:
            raise KeyboardInterrupt
        return bench.step()

    with pytest.raises(KeyboardInterrupt):
        measured(bench, probe, step=step)

    assert probe.calls == ["begin", "end"]


@pytest.mark.parametrize("at_rest", [True, False])
def test_progress_says_evidence_pass_at_both_ends(at_rest: bool) -> None:
    bench, probe = Bench(), FakeInstrument(at_rest=at_rest)
    seen: list[tuple[int, int]] = []

    def look() -> None:
        seen.append((bench.recorder.beat[PHASE], bench.recorder.beat[ALLOWED_SILENCE_NS]))

    probe.at_begin = probe.at_end = look
    measured(bench, probe)

    assert [phase for phase, _ in seen] == [EVIDENCE, EVIDENCE]
    assert all(limit == 0 or limit >= 120 * SECOND_NS for _, limit in seen)


# -- pipelines ------------------------------------------------------------------------------------


def test_a_window_without_a_step_says_so_and_the_next_goes_on(pipeline: Pipeline) -> None:
    silent = threading.Event()
    step = pipeline.trainer()
    pipeline.start("d", lambda: pipeline.pause() if silent.is_set() else step(), counts=True)
    probe = FakeInstrument()
    probe.most_s, probe.at_begin, probe.at_end = 0.2, silent.set, silent.clear

    found = watched(pipeline, probe, FakeInstrument("later"))

    # A step under way when the instrument began may still end.
    assert [one.instrument for one in found.passes[1:]] == ["later"]
    assert found.unavailable["probe"] == NO_STEP


def test_a_stall_costs_the_evidence_and_is_told_in_one_sentence(pipeline: Pipeline) -> None:
    clock = FakeClock()
    pipeline.clock, pipeline.recorder = clock, Recorder(clock)
    stalled = threading.Event()

    def work() -> None:
        pipeline.pause()
        clock.advance(0.5 if stalled.is_set() else 0.01)
        if not stalled.is_set():
            pipeline.recorder.step_end(5)

    pipeline.start("d", work, counts=True)
    probe = FakeInstrument()
    probe.most_s, probe.at_begin = 1e9, stalled.set

    found = watched(pipeline, probe, FakeInstrument("later"))

    assert found.timing.steps == 60
    for name in ("probe", "later"):
        assert re.fullmatch(
            r"Pipeline stalled in the evidence pass: no counting mark for \d+ s, 10 s are allowed",
            found.unavailable[name],
        )
    assert probe.calls == ["begin", "end"]


def test_a_worker_that_dies_while_an_instrument_ends_fails_the_test(pipeline: Pipeline) -> None:
    dies = threading.Event()

    def work() -> None:
        if dies.is_set():
            raise ValueError("broken late")
        pipeline.trainer()()

    def end() -> None:
        dies.set()
        while not pipeline.raised:
            pipeline.pause()

    probe = FakeInstrument()
    probe.at_end = end
    pipeline.start("d", work, counts=True)

    with pytest.raises(WorkerDiedError, match=r"evidence pass.*broken late"):
        watched(pipeline, probe)


@pytest.mark.parametrize("where", ["at_begin", "at_end"])
def test_nobody_is_held_after_an_instrument_failed(pipeline: Pipeline, where: str) -> None:
    def fail() -> None:
        raise OSError("no such tracer")

    probe = FakeInstrument(at_rest=True)
    setattr(probe, where, fail)
    pipeline.start("d", pipeline.trainer(), counts=True)

    with pytest.raises(OSError, match="no such tracer"):
        watched(pipeline, probe)

    goes_on(pipeline)


class LateAsking(Recorder):
    """A recorder whose hook asks for its hold only when everybody was let go, if it may."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline.clock)
        self._let_go = threading.Event()

    def hold_soon(self, coordinator: int) -> None:
        self._let_go.clear()
        self._let_go.wait(1.5)
        super().hold_soon(coordinator)

    def release(self) -> None:
        super().release()
        self._let_go.set()


def test_nobody_is_held_by_a_hook_that_outlives_the_measurement(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paced_watch, "HOLD_S", 0.5)
    pipeline.recorder = LateAsking(pipeline)
    pipeline.start("d", pipeline.trainer(), counts=True)
    budget = Budget(steps=60, warmup_steps=5)

    with pytest.raises(MeasureError, match="the A/B cannot hold it"):
        watch_in_turn(
            pipeline,
            pipeline.recorder,
            budget,
            pipeline.devices,
            pipeline.clock,
            Turns(FakePacer([2])),
        )

    goes_on(pipeline)


def goes_on(pipeline: Pipeline) -> None:
    """Wait until a worker makes further marks; one that is held makes none, however long."""
    (stream,) = pipeline.recorder.streams()
    assert stream.hook is None
    before = stream.mark_count
    for _ in range(500):
        if stream.mark_count > before + 1:
            return
        pipeline.pause(0.01)
    pytest.fail("the worker is still held")
