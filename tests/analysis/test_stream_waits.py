"""Waits between streams, on simulated devices and against an oracle of single nanoseconds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis.cause_table import device_times
from pytest_tokbudget.analysis.simulate_program import Machine, Op, OpKind
from pytest_tokbudget.analysis.simulate_trace import Simulated, simulate
from pytest_tokbudget.analysis.stream_waits import LEAST_HELD_NS, RELEASE_NS, exposed_wait_ns
from pytest_tokbudget.analysis.timeline import SyncKind
from tests.simulated_loops import program_of

STEPS = 10
LATENCY_NS = 4_000
"""What a device with few launches is taken to need (`launches.Calibration`)."""


def launch(stream: int, device_ns: int) -> Op:
    return Op(OpKind.LAUNCH, 2_000, device_ns, stream)


def wait(stream: int, other: int) -> Op:
    return Op(OpKind.STREAM_WAIT, 1_000, stream=stream, other=other)


def run(step: list[Op], steps: int = STEPS) -> Simulated:
    machine = Machine(stream_device=(0, 0, 0))
    ends = [Op(OpKind.SYNC_DEVICE, 2_000)]
    return simulate(machine, [step * steps + ends], steps)


def exposed_us(step: list[Op]) -> float:
    """Exposed waits a step, in µs."""
    found = exposed_wait_ns(run(step).timeline, 0)
    assert found is not None
    return found / STEPS / 1e3


MAIN = [launch(0, 100_000) for _ in range(8)]
SIDE = launch(1, 300_000)


def test_a_stream_that_waits_for_another_exposes_the_others_work() -> None:
    waiting = [wait(1, 0), SIDE, wait(0, 1), *MAIN]

    assert exposed_us(waiting) == pytest.approx(300, rel=0.02)


@pytest.mark.parametrize(
    "step",
    [
        MAIN,
        [SIDE, *MAIN],
        [*MAIN, SIDE, launch(2, 50_000)],
        [SIDE, *MAIN, wait(0, 1)],  # done long before: the wait costs nothing
    ],
    ids=["one stream", "overlapping", "three streams", "a wait that is met"],
)
def test_nothing_is_exposed_where_no_stream_is_held(step: list[Op]) -> None:
    assert exposed_us(step) == 0


def test_a_third_streams_work_hides_the_wait() -> None:
    hidden = [wait(1, 0), SIDE, wait(0, 1), launch(2, 2_000_000), *MAIN]

    assert exposed_us(hidden) < 0.1 * 300


def test_the_table_of_causes_holds_the_wait_as_part_of_the_kernels_time() -> None:
    plain, waiting = run(MAIN), run([wait(1, 0), SIDE, wait(0, 1), *MAIN])
    then, now = (device_times(one.timeline, program_of(one))[0] for one in (plain, waiting))

    assert then.stream_wait_ms == 0
    assert now.stream_wait_ms == pytest.approx(now.busy_ms - then.busy_ms, rel=0.02)


def oracle_ns(simulated: Simulated) -> int:
    """Exposed waits, one nanosecond after the other, from the same records."""
    timeline = simulated.timeline
    device, calls, syncs = timeline.device_events, timeline.host_calls, timeline.syncs
    made = {int(one): at for at, one in enumerate(calls.correlation)}
    events = sorted(
        (int(start), int(start + dur), int(stream), made[int(correlation)])
        for start, dur, stream, correlation in zip(
            device.start_ns, device.dur_ns, device.stream, device.correlation
        )
    )
    waits = [
        (int(stream), int(calls.start_ns[made[int(correlation)]]))
        for stream, kind, correlation in zip(syncs.stream, syncs.kind, syncs.correlation)
        if kind == SyncKind.WAIT_EVENT
    ]
    exposed: dict[tuple[int, int], set[int]] = {}
    for at, (start, _, stream, call) in enumerate(events):
        earlier = [one for one in events[:at] if one[2] == stream]
        issued = int(calls.start_ns[call])
        since = int(calls.start_ns[earlier[-1][3]]) if earlier else -1
        if not any(one == stream and since <= when < issued for one, when in waits):
            continue
        ready = issued + int(calls.dur_ns[call]) + LATENCY_NS
        ready = max(ready, earlier[-1][1]) if earlier else ready
        ends = [one for one in events if one[2] != stream and ready < one[1] <= start]
        last = max(ends, key=lambda one: (one[1], -one[2]), default=None)
        if start - ready <= LEAST_HELD_NS or last is None or start - last[1] > RELEASE_NS:
            continue
        alone = exposed.setdefault((stream, last[2]), set())
        for moment in range(ready, last[1], 1_000):
            running = {one[2] for one in events if one[0] <= moment < one[1]}
            if running == {last[2]}:
                alone.add(moment // 1_000)
    work = {one: sum(end - start for start, end, of, _ in events if of == one) for one in range(3)}
    total = 0
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = len(exposed.get((one, other), ())) + len(exposed.get((other, one), ()))
        total += min(1_000 * both, work[one], work[other])
    return total


ops = st.one_of(
    st.builds(launch, st.integers(0, 2), st.integers(1, 12).map(lambda one: 10_000 * one)),
    st.builds(wait, st.integers(0, 2), st.integers(0, 2)),
    st.builds(lambda one: Op(OpKind.PYTHON, 7_000 * one), st.integers(1, 8)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ops, min_size=1, max_size=14))
def test_random_streams_agree_with_the_oracle(program: list[Op]) -> None:
    simulated = run(program, steps=1)
    found = exposed_wait_ns(simulated.timeline, 0)

    # The oracle looks once a microsecond; each stretch may be off by one at either end.
    assert found == pytest.approx(oracle_ns(simulated), abs=2_000 * len(program))
