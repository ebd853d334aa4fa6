from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.replay_cause import ReplayCause
from pytest_tokbudget.analysis.replay_plan import HostModel
from pytest_tokbudget.analysis.whatif import what_if
from tests.simulated_loops import TRACER_NS, priced, program_of, run

FAULTS = [
    ("one_thread", "python", ReplayCause.PYTHON),
    ("one_thread", "sleep", ReplayCause.SLEEP),
    ("one_thread", "item", ReplayCause.SYNC),
    ("one_thread", "cache", ReplayCause.ALLOCATOR),
    ("one_thread", "copy", ReplayCause.COPY),
    ("pipeline", "python", ReplayCause.PYTHON),
    ("pipeline", "sleep", ReplayCause.SLEEP),
    ("starved", "queue", ReplayCause.WAIT),
    ("starved", "queue", ReplayCause.SLEEP),
    ("two_streams", "stream", ReplayCause.WAIT),
]
LAUNCH_BOUND_NS, BALANCED_NS, DEVICE_BOUND_NS = 6_000, 13_000, 60_000


@pytest.mark.parametrize("tracer_ns", [0, TRACER_NS])
@pytest.mark.parametrize("kernel_ns", [LAUNCH_BOUND_NS, BALANCED_NS, DEVICE_BOUND_NS])
@pytest.mark.parametrize(("loop", "fault", "cause"), FAULTS)
def test_a_fault_costs_what_the_simulator_says(
    loop: str, fault: str, cause: ReplayCause, kernel_ns: int, tracer_ns: int
) -> None:
    truth_ms = (run(loop, fault, kernel_ns).step_ns - run(loop, "none", kernel_ns).step_ns) / 1e6
    what = priced(run(loop, fault, kernel_ns, tracer_ns), tracer_ns)
    # The bounds asked of the product: 10 %, or 0.15 ms.
    assert what.ms_per_step(cause, alone=True) == pytest.approx(truth_ms, rel=0.1, abs=0.15)


@pytest.mark.parametrize("kernel_ns", [LAUNCH_BOUND_NS, DEVICE_BOUND_NS])
@pytest.mark.parametrize(("loop", "fault"), sorted({one[:2] for one in FAULTS}))
def test_rows_sum_to_the_replay_and_with_the_unexplained_to_the_timing_pass(
    loop: str, fault: str, kernel_ns: int
) -> None:
    traced = run(loop, fault, kernel_ns, TRACER_NS)
    what = what_if(program_of(traced), HostModel(record_cost_ns=TRACER_NS), timing_step_ms=9.0)
    assert sum(row.ns for row in what.rows) == what.replayed_ns
    assert what.unexplained_ns is not None
    assert what.replayed_ns + what.unexplained_ns == 9_000_000 * what.steps


@pytest.mark.parametrize("kernel_ns", [LAUNCH_BOUND_NS, BALANCED_NS, DEVICE_BOUND_NS])
@pytest.mark.parametrize(("loop", "fault"), sorted({one[:2] for one in FAULTS}))
def test_with_nothing_removed_the_replay_is_the_trace(
    loop: str, fault: str, kernel_ns: int
) -> None:
    assert abs(priced(run(loop, fault, kernel_ns, TRACER_NS), TRACER_NS).identity) < 0.01


@pytest.mark.parametrize("kernel_ns", [LAUNCH_BOUND_NS, BALANCED_NS, DEVICE_BOUND_NS])
@pytest.mark.parametrize("loop", ["one_thread", "pipeline", "two_streams"])
def test_the_replayed_step_is_the_untraced_one(loop: str, kernel_ns: int) -> None:
    untraced = run(loop, "none", kernel_ns).step_ns
    what = priced(run(loop, "none", kernel_ns, TRACER_NS), TRACER_NS)
    # Two threads that saturate the interpreter's lock depend on where in a gap the tracer's cost
    # falls, which a trace does not show.
    allowed = 0.06 if loop == "pipeline" else 0.01
    assert what.replayed_ns / what.steps == pytest.approx(untraced, rel=allowed)


def test_python_behind_a_busy_device_costs_nothing() -> None:
    device_bound = run("one_thread", "python", kernel_ns=150_000, tracer_ns=TRACER_NS)
    what = priced(device_bound, TRACER_NS)
    # Only the first step, which finds the device idle, pays for its 3 ms.
    assert what.ms_per_step(ReplayCause.PYTHON, alone=True) < 3.0 / what.steps + 0.05
    assert what.ms_per_step(ReplayCause.BUSY) > 5.5


def test_a_synchronization_in_a_launch_bound_step_costs_next_to_nothing() -> None:
    what = priced(run("one_thread", "item", LAUNCH_BOUND_NS, TRACER_NS), TRACER_NS)
    assert 0 <= what.ms_per_step(ReplayCause.SYNC, alone=True) < 0.1


def test_the_named_row_carries_its_frame_and_its_samples() -> None:
    what = priced(run("one_thread", "python", LAUNCH_BOUND_NS), 0)
    (row,) = [one for one in what.rows if one.cause is ReplayCause.PYTHON]
    assert row.frame is not None
    assert row.frame.function == "collate"
    assert row.samples == what.steps


@pytest.mark.parametrize(("timing_ms", "approximate"), [(0.53, False), (0.9, True), (None, False)])
def test_a_replay_that_misses_the_timing_pass_is_approximate(
    timing_ms: float | None, approximate: bool
) -> None:
    program = program_of(run("one_thread", "none", LAUNCH_BOUND_NS))
    what = what_if(program, HostModel(), timing_ms)
    assert what.replayed_ns / what.steps / 1e6 == pytest.approx(0.53, abs=0.02)
    assert what.approximate is approximate
