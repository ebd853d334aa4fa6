"""Blocks of an A/B: the step loop on a fake clock, pipelines with real threads."""

from __future__ import annotations

import queue

import pytest

from pytest_tokbudget.analysis.rates import step_times_ms
from pytest_tokbudget.errors import MeasureError, StepError, WorkerDiedError
from pytest_tokbudget.measuring import paced_watch
from pytest_tokbudget.measuring.beat import ALLOWED_SILENCE_NS, DONE, PHASE, SETUP
from pytest_tokbudget.measuring.measurement import Measurement
from pytest_tokbudget.measuring.paced_loop import Turns, measure_in_turn
from pytest_tokbudget.measuring.paced_watch import watch_in_turn
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeInstrument

from .pacers import FakePacer
from .test_loop import Bench
from .test_watch import Pipeline, pipeline

__all__ = ["pipeline"]


def paced(bench: Bench, pacer: FakePacer, *instruments: FakeInstrument) -> Measurement:
    wanted, turns = Budget(steps=50, warmup_steps=4), Turns(pacer, instruments)
    return measure_in_turn(bench.step, bench.recorder, wanted, bench.devices, bench.clock, turns)


def test_a_pass_is_made_of_the_blocks_alone() -> None:
    bench = Bench()
    beats: list[tuple[int, int]] = []

    def pause() -> None:
        beats.append((bench.recorder.beat[PHASE], bench.recorder.beat[ALLOWED_SILENCE_NS]))
        bench.clock.advance(100)

    pacer = FakePacer([2, 3, 2], pause)
    found = paced(bench, pacer)

    assert bench.count == 4 + 7
    # a block ends with a synchronization of 0.5 s
    assert pacer.done == [(2, 520_000_000), (3, 530_000_000), (2, 520_000_000)]
    assert pacer.step_ns == 10_000_000
    assert found.timing.steps == 7
    assert found.timing.tok_s == pytest.approx(700 / 1.57)
    assert found.timing.held_ns == 200_000_000_000
    assert step_times_ms(found.marks[0]).tolist() == [10.0] * 7
    assert found.warmup.steps == 4
    assert found.warmup.seconds == pytest.approx(0.04)
    assert found.warmup.steady
    assert set(beats) == {(SETUP, 0)}, "nobody may take a held worker for a stalled one"
    assert bench.recorder.beat[PHASE] == DONE


def test_memory_reserved_in_the_blocks_makes_a_side_unsteady() -> None:
    bench = Bench()

    def pause() -> None:
        if bench.count > 4:
            bench.devices.reserved += 2**30

    found = paced(bench, FakePacer([2, 2], pause))

    assert not found.warmup.steady
    assert "newly reserved" in found.warmup.reason


def test_instruments_get_their_windows_after_the_last_block() -> None:
    bench, trace = Bench(), FakeInstrument(at_rest=True, steps=20)
    made: list[int] = []
    trace.at_begin = lambda: made.append(bench.count)

    found = paced(bench, FakePacer([2, 3]), trace)

    assert made == [4 + 5]
    assert (found.timing.steps, found.timing.recompilations) == (5, 0)
    assert [(one.instrument, one.steps) for one in found.passes] == [("", 5), ("probe", 20)]


def test_an_end_without_a_block_measures_nothing() -> None:
    with pytest.raises(StepError, match="before a step"):
        paced(Bench(), FakePacer([]))


def in_turn(made: Pipeline, pacer: FakePacer, *instruments: FakeInstrument) -> Measurement:
    wanted, turns = Budget(steps=60, warmup_steps=5), Turns(pacer, instruments)
    return watch_in_turn(made, made.recorder, wanted, made.devices, made.clock, turns)


def test_a_held_pipeline_makes_exactly_the_marks_of_its_blocks(pipeline: Pipeline) -> None:
    pipeline.start("d", pipeline.trainer(), counts=True)
    held: list[int] = []

    def pause() -> None:
        before = sum(one.mark_count for one in pipeline.recorder.streams())
        pipeline.pause(0.02)
        held.append(sum(one.mark_count for one in pipeline.recorder.streams()) - before)

    pacer, trace = FakePacer([3] * 10, pause), FakeInstrument(at_rest=True, steps=5)
    found = in_turn(pipeline, pacer, trace)

    assert held == [0] * len(held)
    assert trace.calls == ["begin", "end"]
    assert [one.kind for one in found.passes] == ["timing", "evidence"]
    assert found.timing.steps == 30
    assert found.timing.tokens == {"real": 3000}
    stepped_ns = sum(ns for _, ns in pacer.done)
    assert found.timing.tok_s == pytest.approx(3000e9 / stepped_ns)
    assert found.timing.held_ns > 9 * 0.02e9 * 0.99
    assert step_times_ms(found.marks[0]).size == 30


def test_workers_behind_a_queue_are_held_too(pipeline: Pipeline) -> None:
    items = pipeline.recorder.queue(queue.Queue(maxsize=2), "items")

    def load() -> None:
        pipeline.pause()
        try:
            items.put(1, timeout=0.05)
        except queue.Full:
            return

    def train() -> None:
        try:
            items.get(timeout=0.05)
        except queue.Empty:
            return
        pipeline.recorder.step_end(100)

    pipeline.start("loader", load, role="loader")
    pipeline.start("a", train, counts=True)
    pipeline.start("b", train, counts=True)
    found = in_turn(pipeline, FakePacer([2] * 5, lambda: pipeline.pause(0.01)))

    # two counting workers: a block of 2 steps is 4 marks, and at most one more of the other
    assert 20 <= found.timing.steps <= 25
    assert len([one for one in found.marks if one.window]) == 2


def test_a_worker_without_safepoints_cannot_be_held(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paced_watch, "HOLD_S", 0.05)
    pipeline.start("d", pipeline.trainer(), counts=True)
    pipeline.start("busy", pipeline.pause)

    with pytest.raises(MeasureError, match="cannot be held: worker 'busy'"):
        in_turn(pipeline, FakePacer([2]))


def test_a_worker_that_dies_in_a_block_fails_it(pipeline: Pipeline) -> None:
    made = 0

    def train() -> None:
        nonlocal made
        made += 1
        if made > 12:
            raise ValueError("no such batch")
        pipeline.recorder.step_end(100)
        pipeline.pause()

    pipeline.start("d", train, counts=True)

    with pytest.raises(WorkerDiedError, match="no such batch"):
        in_turn(pipeline, FakePacer([3] * 10))
