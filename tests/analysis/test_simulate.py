from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.analysis.simulate import Simulator
from pytest_tokbudget.analysis.simulate_program import Machine, Op, OpKind
from pytest_tokbudget.analysis.simulate_trace import simulate


def test_a_launch_and_its_kernel_take_the_time_they_take() -> None:
    ops = [
        Op(OpKind.PYTHON, 10_000),
        Op(OpKind.LAUNCH, 4_000, 50_000),
        Op(OpKind.SYNC_DEVICE, 3_000),
    ]
    trace = Simulator(Machine(), [ops]).run()
    (kernel,) = trace.kernels
    assert (kernel.start_ns, kernel.end_ns) == (16_000, 66_000)
    assert trace.end_ns == {0: 69_000}


def test_the_tracer_costs_half_before_a_call_and_half_in_it() -> None:
    trace = Simulator(Machine(tracer_ns=6_000), [[Op(OpKind.LAUNCH, 4_000, 1_000)]]).run()
    assert (trace.calls[0].start_ns, trace.calls[0].end_ns) == (3_000, 10_000)


def test_python_of_two_threads_takes_turns_and_sleep_does_not() -> None:
    python = [Op(OpKind.PYTHON, 30_000)]
    assert Simulator(Machine(), [python, python]).run().end_ns == {0: 30_000, 1: 60_000}
    sleep = [Op(OpKind.SLEEP, 30_000)]
    assert Simulator(Machine(), [sleep, python]).run().end_ns == {0: 30_000, 1: 30_000}


def test_a_holder_gives_the_lock_away_after_five_milliseconds() -> None:
    long, short = [Op(OpKind.PYTHON, 12_000_000)], [Op(OpKind.PYTHON, 1_000)]
    assert Simulator(Machine(), [long, short]).run().end_ns == {0: 12_001_000, 1: 5_001_000}


def test_a_full_queue_blocks_its_producer_and_an_empty_one_its_consumer() -> None:
    machine = Machine(capacity=(1,), queue_ns=0)
    producer = [Op(OpKind.PUT)] * 3
    consumer = [Op(OpKind.SLEEP, 50_000), Op(OpKind.GET), Op(OpKind.SLEEP, 10_000), Op(OpKind.GET)]
    assert Simulator(machine, [producer, consumer]).run().end_ns == {0: 60_000, 1: 60_000}


def test_a_stream_waits_for_the_work_of_another() -> None:
    ops = [
        Op(OpKind.LAUNCH, 1_000, 90_000, 1),
        Op(OpKind.STREAM_WAIT, 1_000, stream=0, other=1),
        Op(OpKind.LAUNCH, 1_000, 5_000, 0),
    ]
    trace = Simulator(Machine(stream_device=(0, 0)), [ops]).run()
    assert [(one.owner, one.end_ns) for one in trace.kernels] == [(1, 93_000), (0, 98_000)]


def test_a_full_launch_queue_blocks_the_host() -> None:
    trace = Simulator(Machine(launch_limit=2), [[Op(OpKind.LAUNCH, 1_000, 50_000)] * 3]).run()
    assert trace.calls[2].end_ns == trace.kernels[0].end_ns + 1_000


def test_threads_that_wait_for_each_other_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="deadlock"):
        Simulator(Machine(capacity=(1,)), [[Op(OpKind.GET)]]).run()


def test_a_trace_has_what_a_profiler_would_see() -> None:
    ops = [
        Op(OpKind.PYTHON, 5_000, name="collate"),
        Op(OpKind.LAUNCH, 1_000, 9_000, native=True),
        Op(OpKind.SYNC_STREAM, 1_000),
    ]
    seen = simulate(Machine(), [ops], steps=1)
    timeline = seen.timeline
    assert [timeline.threads[one].python for one in timeline.host_calls.thread] == [False, True]
    assert np.isin(timeline.device_events.correlation, timeline.host_calls.correlation).all()
    assert timeline.window.wall_ns == 18_000
    assert seen.labels.frames[seen.labels.frame[0]].function == "collate"
