"""Canaries: interleaved at little cost, out of the rate, and without a trace in the process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
import torch

from pytest_tokbudget.analysis.rates import step_times_ms
from pytest_tokbudget.measuring import canary
from pytest_tokbudget.measuring.canary import Canaries
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.loop import measure_steps
from pytest_tokbudget.measuring.measurement import Measurement
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeClock, FakeDevices

Loop = Callable[..., Measurement]


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Loop:
    """Steps of 10 ms, and a host loop of 1 ms, on a fake clock."""
    clock = FakeClock(start_ns=0)
    monkeypatch.setattr(canary, "host_loop", lambda: clock.advance(1e-3))
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    def run(devices: FakeDevices | None = None, **budget: object) -> Measurement:
        def step() -> int:
            clock.advance(10e-3)
            return 100

        wanted = Budget(**{"steps": 200, "warmup_steps": 5, **budget})  # type: ignore[arg-type]
        return measure_steps(step, Recorder(clock), wanted, devices or FakeDevices(), clock)

    return run


def test_the_rate_leaves_out_exactly_the_time_of_the_canaries(measure: Loop) -> None:
    found = measure()
    (marks,) = found.marks
    assert len(marks.pauses_ns) == canary.MOST_STOPS
    assert all(end - start == 1_000_000 for start, end in marks.pauses_ns)
    assert found.timing.tok_s == 10_000.0
    assert found.timing.held_ns == canary.MOST_STOPS * 1_000_000
    assert list(step_times_ms(marks)) == [10.0] * 200
    assert found.timing.steps == 200


def test_the_readings_say_where_they_were_taken(measure: Loop) -> None:
    found = measure()
    by_where = {one.where: one for one in found.canaries}
    assert list(by_where) == ["before", "interleaved", "after"]
    assert by_where["interleaved"].durations_ns == [1_000_000] * canary.MOST_STOPS
    start_ns, end_ns = found.marks[0].window_ns or (0, 0)
    assert max(by_where["before"].times_ns) < start_ns
    assert all(start_ns < one < end_ns for one in by_where["interleaved"].times_ns)
    assert min(by_where["after"].times_ns) >= end_ns


@pytest.mark.parametrize(("steps", "stops"), [(10, 1), (25, 5), (4, 0), (1, 0)])
def test_a_short_pass_has_fewer_stops_and_pays_at_most_2_percent(
    measure: Loop, steps: int, stops: int
) -> None:
    found = measure(steps=steps)
    (marks,) = found.marks
    assert len(marks.pauses_ns) == stops
    assert found.timing.held_ns <= 0.02 * steps * 10e6
    assert found.timing.tok_s == pytest.approx(10_000.0)


def test_devices_that_idle_between_steps_are_synchronized_a_handful_of_times(
    measure: Loop,
) -> None:
    devices = FakeDevices(("cuda:0",))
    found = measure(devices)
    assert len(found.marks[0].pauses_ns) == canary.MOST_STOPS_ON_DEVICES
    assert len(devices.synchronized) == 2 + canary.MOST_STOPS_ON_DEVICES


def test_where_steps_queue_up_ahead_of_the_devices_the_pass_is_not_cut() -> None:
    clock = FakeClock()
    canaries = Canaries(clock, FakeDevices(("cuda:0",)))
    canaries._cost_ns = 1
    assert len(canaries.blocks(100, step_ns=10, drain_ns=5)) > 1
    assert canaries.blocks(100, step_ns=10, drain_ns=6) == [100]


def test_a_clock_that_stands_still_gives_no_readings() -> None:
    canaries = Canaries(FakeClock(), FakeDevices())
    canaries.begin_pass()
    assert canaries.blocks(100, 10, 0) == [100]
    assert canaries.series() == []


def test_a_second_pass_forgets_the_first(measure: Loop) -> None:
    clock = SystemClock()
    canaries = Canaries(clock, FakeDevices())
    for _ in range(2):
        canaries.begin_pass()
        canaries.stop()
    counts = {(one.name, one.where): len(one.times_ns) for one in canaries.series()}
    assert counts[canary.HOST_LOOP, "interleaved"] == 1
    assert counts[canary.HOST_LOOP, "before"] == 5


@pytest.fixture(params=["plain", "inference", "no_grad", "float64", "autocast"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Modes in which the author's code may leave the thread."""
    before = torch.get_default_dtype()
    modes = {"inference": torch.inference_mode, "no_grad": torch.no_grad}
    if request.param == "float64":
        torch.set_default_dtype(torch.float64)
    try:
        if request.param == "autocast":
            with torch.autocast("cpu"):
                yield request.param
        elif request.param in modes:
            with modes[request.param]():
                yield request.param
        else:
            yield request.param
    finally:
        torch.set_default_dtype(before)


def test_the_tiny_step_runs_in_every_mode_and_leaves_no_trace(mode: str) -> None:
    state, grad = torch.get_rng_state(), torch.is_grad_enabled()
    inference = torch.is_inference_mode_enabled()
    canaries = Canaries(SystemClock(), FakeDevices())
    canaries.begin_pass()
    canaries.stop()
    assert canaries.unavailable == ""
    assert {one.name for one in canaries.series()} == {canary.HOST_LOOP, canary.TINY_STEP}
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled() == grad
    assert torch.is_inference_mode_enabled() == inference


def test_without_torch_in_the_process_it_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    canaries = Canaries(SystemClock(), FakeDevices())
    canaries.begin_pass()
    assert {one.name for one in canaries.series()} == {canary.HOST_LOOP}
    assert "torch" not in sys.modules


def test_a_canary_that_cannot_run_is_said_and_stops_nothing() -> None:
    canaries = Canaries(SystemClock(), FakeDevices(("cuda:99",)))
    canaries.begin_pass()
    assert {one.name for one in canaries.series()} == {canary.HOST_LOOP}
    assert canaries.unavailable.startswith("only the host loop: ")
