from __future__ import annotations

import sys
from statistics import mean

import pytest
from dflash import simulated
from dflash.config import SIZES, Timing
from dflash.disturbances import CorrelatedStall, StepLog
from dflash.knobs import parse_knobs
from dflash.recording import Unrecorded
from dflash.simulated import (
    RUN_AHEAD_NS,
    SimulatedDrafter,
    SimulatedStates,
    SimulatedTarget,
    Timeline,
    build_simulated,
    target_schedule,
)
from dflash.stages import Workshop

MS = 1_000_000


class ManualTime:
    """Time that passes by being slept, and then ``overshoot_ns`` more."""

    def __init__(self, overshoot_ns: int = 0) -> None:
        self.now_ns, self.overshoot_ns = 10**12, overshoot_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9) + self.overshoot_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualTime:
    manual = ManualTime()
    monkeypatch.setattr(simulated, "time", manual)
    return manual


def stages(knobs: str) -> tuple[SimulatedTarget, SimulatedDrafter]:
    size = SIZES["simulated"]
    assert size.timing is not None
    workshop = Workshop(size, parse_knobs(knobs), Unrecorded(), StepLog(10**6))
    targets, drafters = build_simulated(workshop, size.timing)
    assert (len(targets), len(drafters)) == (5, 3)
    assert isinstance(targets[0], SimulatedTarget)
    assert isinstance(drafters[0], SimulatedDrafter)
    return targets[0], drafters[0]


def test_a_schedule_is_always_the_same_and_every_cycle_takes_equally_long() -> None:
    timing = Timing()
    first = target_schedule(timing, 0)
    assert first == target_schedule(timing, 0)
    assert first != target_schedule(timing, 1)
    assert sorted(first) == sorted(target_schedule(timing, 1))
    *others, long = sorted(first)
    assert long == 300.0
    assert len(others) == 24
    assert mean(others) == pytest.approx(30.0)
    assert 15.0 < others[0] < 16.0
    assert 44.0 < others[-1] < 45.0


def test_waking_late_does_not_add_up(clock: ManualTime) -> None:
    timeline = Timeline()
    start = timeline.run(10)
    clock.overshoot_ns = 4 * MS
    ends = [timeline.run(10) for _ in range(20)]
    assert ends == [start + 10 * MS * (i + 1) for i in range(20)]


def test_a_host_later_than_launches_run_ahead_delays_the_device(clock: ManualTime) -> None:
    timeline = Timeline()
    timeline.run(10)
    clock.now_ns += RUN_AHEAD_NS + 7 * MS
    late = clock.now_ns
    assert timeline.run(10) == late - RUN_AHEAD_NS + 10 * MS


def test_work_waits_for_its_input(clock: ManualTime) -> None:
    ready = clock.now_ns + 50 * MS
    assert Timeline().run(10, ready) == ready + 10 * MS


def test_all_workers_stall_together_after_every_so_many_steps() -> None:
    stall = CorrelatedStall(3, 400.0)
    stall.step_ended(1)
    stall.step_ended(2)
    assert (stall.stalls, stall.resume_ns) == (0, 0)
    stall.step_ended(30)
    assert (stall.stalls, stall.resume_ns) == (1, 30 + 400 * MS)
    never = CorrelatedStall(0, 400.0)
    never.step_ended(1)
    assert never.resume_ns == 0


@pytest.mark.usefixtures("clock")
def test_drafters_stall_together_after_forty_five_steps_each() -> None:
    size = SIZES["simulated"]
    assert size.timing is not None
    workshop = Workshop(size, parse_knobs(""), Unrecorded(), StepLog(10**6))
    _, drafters = build_simulated(workshop, size.timing)
    checkpoint = getattr(drafters[0], "_checkpoint")  # noqa: B009 - shared by all three
    for step in range(1, 46):
        for drafter in drafters:
            assert checkpoint.stalls == 0
            drafter.train(SimulatedStates(0, 0), step)
    assert checkpoint.stalls == 1


def target_ms(knobs: str, clock: ManualTime) -> float:
    """How long a target's path takes for a cycle of its schedule, in ms a step."""
    target, _ = stages(knobs)
    begin = clock.now_ns
    sync = "post=sync" in knobs
    for index in range(25):
        computed = target.compute(index)
        if sync:
            target.post(computed)
    return (clock.now_ns - begin) / MS / 25


def drafter_ms(knobs: str, clock: ManualTime) -> float:
    _, drafter = stages(knobs)
    # The first step begins RUN_AHEAD_NS before now; by the third the host waits for the device.
    for step in range(1, 4):
        drafter.train(SimulatedStates(0, 0), step)
    begin = clock.now_ns
    for step in range(4, 14):
        drafter.train(SimulatedStates(0, 0), step)
    return (clock.now_ns - begin) / MS / 10


@pytest.mark.parametrize(
    ("knobs", "more_ms"),
    [
        ("post=sync", 6.0),
        ("docids=python_loop", 4.0),
        ("alloc=churn", 3.0),
        ("pin=no", 4.0),
        ("mask=eager sync=each anchors=variable depth=20", 0.0),
    ],
)
def test_what_a_knob_costs_a_target(knobs: str, more_ms: float, clock: ManualTime) -> None:
    # The first step begins up to RUN_AHEAD_NS before now in both.
    assert target_ms(knobs, clock) - target_ms("", clock) == pytest.approx(more_ms, abs=1e-6)


@pytest.mark.parametrize(
    ("knobs", "more_ms"),
    [
        ("sync=each", 4.0),
        ("mask=eager", 7.0),
        ("masks=2", 1.0),
        ("masks=2 mask=eager", 15.0),
        ("anchors=variable", 20.0),
        ("alloc=churn", 3.0),
        ("post=sync docids=python_loop pin=no", 0.0),
    ],
)
def test_what_a_knob_costs_a_drafter(knobs: str, more_ms: float, clock: ManualTime) -> None:
    assert drafter_ms("", clock) == pytest.approx(13.5)
    assert drafter_ms(knobs, clock) == pytest.approx(13.5 + more_ms)


@pytest.mark.usefixtures("clock")
def test_targets_stall_together_as_the_knob_says() -> None:
    target, _ = stages("stall_every=2")
    stall = getattr(target, "_stall")  # noqa: B009 - shared by all five
    for index in range(9):
        target.compute(index)
    assert stall.stalls == 0
    target.compute(9)
    assert stall.stalls == 1


def test_the_simulated_size_needs_no_torch() -> None:
    import subprocess

    code = (
        "import sys; import dflash.pipeline, dflash.knobs, dflash.simulated;"
        "sys.exit('torch' in sys.modules)"
    )
    paths = [path for path in sys.path if path]
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(paths)}, check=False
    )
    assert done.returncode == 0
