"""The evidence pass: windows after the timing pass, and what may go wrong in one."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from pytest_tokbudget.errors import WorkerDiedError
from pytest_tokbudget.measuring.instrumented_watch import watch_with_instruments
from pytest_tokbudget.measuring.loop import measure_steps
from pytest_tokbudget.measuring.measurement import NOT_MEASURED, Measurement
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeInstrument

from .test_loop import Bench
from .test_watch import Pipeline, pipeline

__all__ = ["pipeline"]


def measured(
    bench: Bench, *instruments: FakeInstrument, step: Callable[[], object] | None = None
) -> Measurement:
    budget = Budget(steps=50, warmup_steps=5)
    return measure_steps(
        step or bench.step, bench.recorder, budget, bench.devices, bench.clock, instruments
    )


def failing_after(bench: Bench, steps: int, error: BaseException) -> Callable[[], object]:
    def step() -> object:
        if bench.count == steps:
            raise error
        return bench.step()

    return step


def test_the_timing_pass_is_what_it_is_without_instruments() -> None:
    plain = measured(Bench())
    found = measured(Bench(), FakeInstrument(), FakeInstrument("other", at_rest=True))

    assert found.timing == plain.timing
    assert found.marks[0].window == plain.marks[0].window
    assert found.marks[0].window_ns == plain.marks[0].window_ns
    assert plain.unavailable["ledger"] == NOT_MEASURED
    assert "ledger" not in found.unavailable


@pytest.mark.parametrize("at_rest", [True, False])
def test_each_instrument_gets_its_steps_after_the_pass(at_rest: bool) -> None:
    first = FakeInstrument("first", at_rest=at_rest, steps=20)
    second = FakeInstrument("second", at_rest=at_rest, steps=30)

    passes = measured(Bench(), first, second).passes

    assert [(one.kind, one.instrument, one.steps) for one in passes[1:]] == [
        ("evidence", "first", 20),
        ("evidence", "second", 30),
    ]
    assert all(one.end_ns <= next_one.start_ns for one, next_one in itertools.pairwise(passes))
    assert first.calls == second.calls == ["begin", "end"]
    assert passes[1].tokens == {"real": 2000}


def test_a_slow_start_of_an_instrument_is_in_no_window() -> None:
    bench = Bench()
    probe = FakeInstrument()
    probe.at_begin = lambda: bench.clock.advance(5.0)

    found = measured(bench, probe)

    assert found.passes[1].tok_s == pytest.approx(100 / 0.010)


def test_a_refusal_leaves_its_reason_and_the_next_goes_on() -> None:
    refused, other = FakeInstrument("refused"), FakeInstrument("other")
    refused.refusal = Unavailable("not here")

    found = measured(Bench(), refused, other)

    assert found.unavailable["refused"] == "not here"
    assert [one.instrument for one in found.passes[1:]] == ["other"]
    assert refused.calls == []


def test_a_window_ends_in_time_however_few_steps_it_has() -> None:
    probe = FakeInstrument(steps=10_000)
    probe.most_s = 1.0

    assert measured(Bench(), probe).passes[1].steps == 100


def test_a_window_lasts_as_long_as_asked() -> None:
    probe = FakeInstrument(steps=1)
    probe.least_s = 2.0

    assert measured(Bench(), probe).passes[1].steps == 200


@pytest.mark.parametrize("at_rest", [True, False])
@pytest.mark.parametrize("steps", [56, 57, 70])
def test_data_that_runs_out_costs_only_the_evidence(at_rest: bool, steps: int) -> None:
    bench = Bench()
    probe, later = FakeInstrument(at_rest=at_rest), FakeInstrument("later")

    found = measured(bench, probe, later, step=failing_after(bench, steps, StopIteration()))

    assert found.timing.steps == 50
    assert probe.calls == ["begin", "end"]
    assert "ended before the evidence pass" in found.unavailable["later"]
    seen = [one.instrument for one in found.passes[1:]]
    assert seen == (["probe"] if steps > 56 else [])
    assert ("probe" in found.unavailable) is (steps == 56)


def test_the_error_of_a_step_goes_on_though_the_device_fails_with_it() -> None:
    bench = Bench()
    probe = FakeInstrument(at_rest=True)

    def step() -> object:
        if bench.count == 60:
            bench.devices.synchronize = broken  # type: ignore[method-assign,assignment]
            raise ValueError("the step's own")
        return bench.step()

    def broken(_device: str | None = None) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(ValueError, match="the step's own"):
        measured(bench, probe, step=step)

    assert probe.calls == ["begin", "end the workload"]


# -- pipelines ------------------------------------------------------------------------------------


def watched(pipeline: Pipeline, *instruments: FakeInstrument) -> Measurement:
    budget = Budget(steps=60, warmup_steps=10)
    return watch_with_instruments(
        pipeline, pipeline.recorder, budget, pipeline.devices, pipeline.clock, instruments
    )


def test_workers_stand_still_at_both_ends_and_go_on_after(pipeline: Pipeline) -> None:
    pipeline.start("trainer", pipeline.trainer(), counts=True)
    (stream,) = _streams(pipeline, 1)
    stood: list[bool] = []

    def look() -> None:
        before = stream.mark_count
        pipeline.pause(0.05)
        stood.append(stream.mark_count == before)

    probe = FakeInstrument(at_rest=True)
    probe.at_begin = probe.at_end = look

    found = watched(pipeline, probe)

    assert stood == [True, True]
    assert found.passes[1].steps >= 20
    before = stream.mark_count
    pipeline.pause(0.05)
    assert stream.mark_count > before, "nobody is held any more"


def test_a_pipeline_that_ends_by_itself_costs_only_the_evidence(pipeline: Pipeline) -> None:
    made = itertools.count()

    def work() -> bool:
        pipeline.pause()
        pipeline.recorder.step_end(100)
        return next(made) < 1500

    pipeline.start("trainer", work, counts=True)

    found = watched(pipeline, FakeInstrument(steps=9_999), FakeInstrument("later", at_rest=True))

    assert found.timing.steps >= 60
    assert "ended before the evidence pass" in found.unavailable["later"]


def test_a_worker_that_dies_in_the_evidence_pass_fails_the_test(pipeline: Pipeline) -> None:
    probe = FakeInstrument(steps=10_000)
    dies = False

    def work() -> None:
        if dies:
            raise ValueError("broken")
        pipeline.trainer()()

    def begin() -> None:
        nonlocal dies
        dies = True

    probe.at_begin = begin
    pipeline.start("trainer", work, counts=True)

    with pytest.raises(WorkerDiedError, match=r"evidence pass.*broken"):
        watched(pipeline, probe)

    assert probe.calls == ["begin", "end"]


def _streams(pipeline: Pipeline, count: int) -> list:  # type: ignore[type-arg]
    while len(found := pipeline.recorder.streams()) < count:
        pipeline.pause(0.001)
    return found
