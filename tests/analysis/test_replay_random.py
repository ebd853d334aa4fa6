"""Random programs: the replay of a simulated trace is that trace, and its rows sum to it."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_plan import HostModel
from pytest_tokbudget.analysis.simulate_program import Machine, Op, OpKind
from pytest_tokbudget.analysis.simulate_trace import Simulated, simulate
from pytest_tokbudget.analysis.whatif import what_if

SLACK_NS = 5_000
"""A step, on top of the per cent asked for: these steps are far shorter than any real one."""
HOST_NS = st.integers(1_000, 200_000)
DEVICE_NS = st.integers(1_000, 300_000)


def ops(streams: int) -> st.SearchStrategy[Op]:
    stream = st.integers(0, streams - 1)
    return st.one_of(
        st.builds(Op, st.just(OpKind.PYTHON), HOST_NS),
        st.builds(Op, st.just(OpKind.SLEEP), HOST_NS),
        st.builds(Op, st.just(OpKind.LAUNCH), st.integers(1_000, 9_000), DEVICE_NS, stream),
        st.builds(Op, st.just(OpKind.COPY_OUT), st.integers(1_000, 9_000), DEVICE_NS, stream),
        st.builds(Op, st.just(OpKind.SYNC_STREAM), st.integers(1_000, 9_000), stream=stream),
        st.builds(Op, st.just(OpKind.MALLOC), HOST_NS),
        st.builds(Op, st.just(OpKind.FREE), st.integers(1_000, 9_000)),
    )


def misses(identity: float, seen: Simulated) -> float:
    """By which share the replay misses the trace, beyond the slack."""
    return abs(identity) - SLACK_NS / seen.step_ns


def steps_of(step: list[Op], count: int, last: Op | None = None) -> list[Op]:
    return [*step * count, *([last] if last else [])]


@settings(max_examples=40, deadline=None, phases=[Phase.generate], derandomize=True)
@given(st.lists(ops(2), min_size=8, max_size=30), st.sampled_from([0, 5_000]))
def test_one_thread_on_two_streams(step: list[Op], tracer_ns: int) -> None:
    launch = Op(OpKind.LAUNCH, 3_000, 20_000)
    program = steps_of([launch, *step], 8, Op(OpKind.SYNC_DEVICE, 2_000))
    machine = Machine(stream_device=(0, 0), tracer_ns=tracer_ns)
    seen = simulate(machine, [program], steps=8)
    what = what_if(decode(seen.timeline, seen.labels).program, HostModel(tracer_ns))
    assert misses(what.identity, seen) < 0.01
    assert sum(row.ns for row in what.rows) == what.replayed_ns


@settings(max_examples=25, deadline=None, phases=[Phase.generate], derandomize=True)
@given(
    st.lists(ops(1), min_size=4, max_size=15),
    st.lists(ops(1), min_size=4, max_size=15),
    st.integers(1, 4),
)
def test_a_producer_and_a_consumer(make: list[Op], use: list[Op], capacity: int) -> None:
    launch = Op(OpKind.LAUNCH, 3_000, 20_000)
    producer = steps_of([launch, *make, Op(OpKind.PUT)], 10)
    on_second = [Op(one.kind, one.ns, one.device_ns, 1) for one in use]
    consumer = steps_of(
        [Op(OpKind.GET), Op(OpKind.LAUNCH, 3_000, 20_000, 1), *on_second],
        10,
        Op(OpKind.SYNC_DEVICE, 2_000, stream=1),
    )
    machine = Machine(stream_device=(0, 1), capacity=(capacity,))
    seen = simulate(machine, [consumer, producer], steps=10)
    program = decode(seen.timeline, seen.labels, seen.queues, 0).program
    what = what_if(program, HostModel())
    # Where a thread took the lock several times within one gap, the trace does not say when.
    assert misses(what.identity, seen) < 0.1
    assert sum(row.ns for row in what.rows) == what.replayed_ns
