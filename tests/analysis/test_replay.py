"""The vectorized replay against a slow one that walks event by event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis.replay import replay
from pytest_tokbudget.analysis.replay_plan import HostModel, make_plan
from pytest_tokbudget.analysis.replay_program import (
    CallKind,
    DeviceProgram,
    HostProgram,
    Program,
    Waits,
)

LATENCY_NS = 2_000.0


def build(
    own: list[int],
    call: list[int],
    *,
    kernels: list[tuple[int, int, int]] = (),  # type: ignore[assignment]
    waits: dict[int, tuple[Waits, int]] | None = None,
    lanes: tuple[int, ...] = (),
    items: dict[int, int] | None = None,
    capacity: tuple[int, ...] = (),
    limit: int = 0,
    closing: tuple[int, ...] = (),
    after: dict[int, int] | None = None,
) -> Program:
    """A program; ``kernels`` are (call, stream, ns), ``waits`` and ``items`` are by call."""
    count = len(own)
    zero = np.zeros(count)
    kind = np.full(count, CallKind.LAUNCH, np.int8)
    code, target = np.zeros(count, np.int8), np.full(count, -1, np.int64)
    item = np.full(count, -1, np.int64)
    for at, (what, which) in (waits or {}).items():
        code[at], target[at] = what, which
        kind[at] = {Waits.PUT: CallKind.PUT, Waits.GET: CallKind.GET}.get(what, CallKind.SYNC)
    for at, number in (items or {}).items():
        item[at] = number
    host = HostProgram(
        kind=kind,
        own_ns=np.array(own, float),
        named_ns=zero,
        named=np.full(count, -1, np.int32),
        sleep_ns=zero,
        wait_ns=zero,
        idle_first=np.zeros(count, np.bool_),
        stall_ns=zero,
        call_ns=np.array(call, float),
        blocked_ns=zero,
        records=np.ones(count),
        python=np.ones(count),
        waits=code,
        target=target,
        item=item,
    )
    table = np.array(sorted(kernels), np.int64).reshape(-1, 3)
    dependency = np.full(len(table), -1, np.int64)
    for kernel, other in (after or {}).items():
        dependency[kernel] = other
    device = DeviceProgram(
        call=table[:, 0],
        stream=table[:, 1].astype(np.int32),
        kind=np.zeros(len(table), np.int8),
        dur_ns=table[:, 2].astype(float),
        spacing_ns=np.full(len(table), 1_000.0),
        after=dependency,
        lag_ns=np.zeros(len(table)),
    )
    streams = int(table[:, 1].max(initial=0)) + 1
    bounds = np.array((0, *lanes, count), np.int64)
    return Program(
        host=host,
        device=device,
        lane_bounds=bounds,
        lane_threads=tuple(range(len(bounds) - 1)),
        main=0,
        stream_device=np.zeros(streams, np.int64),
        carried_ns=np.zeros(streams),
        latency_ns=np.full(streams, LATENCY_NS),
        launch_limit=limit,
        closing_streams=closing,
        steps=1,
        wall_ns=1.0,
        queue_names=tuple(str(one) for one in capacity),
        queue_capacity=capacity,
    )


def slow_replay(program: Program) -> tuple[float, list[float]]:
    """One lane, event by event: the end of the lane, and of each kernel."""
    host, device = program.host, program.device
    free = [0.0] * len(program.stream_device)
    starts: list[list[float]] = [[] for _ in free]
    now, ends = 0.0, []
    for at in range(len(host)):
        now += host.own_ns[at]
        mine = [k for k in range(len(device)) if device.call[k] == at]
        if host.waits[at] == Waits.DEVICE:
            now = max(now, *free)
        elif host.waits[at] == Waits.STREAM:
            now = max(now, free[host.target[at]])
        end = now + host.call_ns[at]
        for k in mine:
            stream = device.stream[k]
            if program.launch_limit and len(starts[stream]) >= program.launch_limit:
                held = starts[stream][-program.launch_limit]
                end = max(end, held + (host.call_ns[at] if host.waits[at] else 0.0))
        now = end
        for k in mine:
            stream = device.stream[k]
            start = max(free[stream] + device.spacing_ns[k], now + LATENCY_NS)
            free[stream] = start + device.dur_ns[k]
            starts[stream].append(start)
            ends.append(free[stream])
    return now, ends


@st.composite
def programs(draw: st.DrawFn) -> Program:
    count = draw(st.integers(1, 60))
    times = st.integers(0, 30_000)
    own = draw(st.lists(times, min_size=count, max_size=count))
    call = draw(st.lists(times, min_size=count, max_size=count))
    streams = draw(st.integers(1, 3))
    kernel = st.tuples(st.integers(0, count - 1), st.integers(0, streams - 1), times)
    kernels = draw(st.lists(kernel, max_size=80))
    blocking = draw(st.lists(st.integers(0, count - 1), max_size=5, unique=True))
    launching = {one[0] for one in kernels}
    waits = {
        at: (Waits.DEVICE, 0) if at % 2 else (Waits.STREAM, 0)
        for at in blocking
        if at not in launching
    }
    return build(own, call, kernels=kernels, waits=waits)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_replays_as_the_slow_walk_does(program: Program) -> None:
    result = replay(make_plan(program, HostModel()))
    end, kernel_ends = slow_replay(program)
    assert list(result.lane_end_ns) == pytest.approx([end])
    assert result.kernel_end_ns == pytest.approx(kernel_ends)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9_000), min_size=20, max_size=90), st.integers(2, 12))
def test_a_full_launch_queue_holds_the_host_back(kernel_ns: list[int], limit: int) -> None:
    count = len(kernel_ns)
    kernels = [(at, 0, ns) for at, ns in enumerate(kernel_ns)]
    program = build([500] * count, [300] * count, kernels=kernels, limit=limit)
    result = replay(make_plan(program, HostModel()))
    end, kernel_ends = slow_replay(program)
    assert list(result.lane_end_ns) == pytest.approx([end])
    assert result.kernel_end_ns == pytest.approx(kernel_ends)


def test_the_window_ends_with_the_streams_its_synchronization_waited_for() -> None:
    kernels = [(0, 0, 50_000), (1, 1, 90_000)]
    program = build([0, 0], [1_000, 1_000], kernels=kernels)
    open_end = replay(make_plan(program, HostModel())).wall_ns
    closed = replay(make_plan(replace(program, closing_streams=(0,)), HostModel())).wall_ns
    assert (open_end, closed) == (2_000, 53_000)


def test_a_get_waits_for_its_put_and_a_put_for_room() -> None:
    put, get = (Waits.PUT, 0), (Waits.GET, 0)
    program = build(
        [0, 50_000, 10_000, 0, 0],
        [100] * 5,
        waits={0: get, 1: get, 2: put, 3: put, 4: put},
        items={0: 0, 1: 1, 2: 0, 3: 1, 4: 2},
        lanes=(2,),
        capacity=(1,),
    )
    # The first get waits for the first put (10 µs); the third put waits for the second get.
    result = replay(replace(make_plan(program, HostModel()), gil_ns=np.zeros(5)))
    assert list(result.lane_end_ns) == [60_300, 60_400]
    assert result.stuck == 0


def test_a_kernel_starts_after_the_one_of_another_stream_it_waits_for() -> None:
    kernels = [(0, 0, 80_000), (1, 1, 5_000)]
    program = build([0, 0], [1_000, 1_000], kernels=kernels, after={1: 0})
    ends = replay(make_plan(program, HostModel())).kernel_end_ns
    assert list(ends) == [83_000, 88_000]


def test_a_copy_holds_the_host_until_it_is_done() -> None:
    kernels = [(0, 0, 40_000), (1, 0, 20_000)]
    program = build([0, 0], [1_000, 500], kernels=kernels, waits={1: (Waits.COPY, 1)})
    result = replay(make_plan(program, HostModel()))
    assert result.lane_end_ns == (43_000 + 1_000 + 20_000 + 500,)


def test_threads_take_turns_with_the_interpreters_lock() -> None:
    program = replace(build([30_000, 20_000], [1_000, 1_000], lanes=(1,)), python_lanes=2)
    plan = make_plan(program, HostModel())
    own = np.array([30_000.0, 20_000.0])
    result = replay(replace(plan, own_ns=own, gil_ns=own))
    assert result.lane_end_ns == (31_000, 51_000)


def test_a_long_holder_gives_the_lock_away_after_five_milliseconds() -> None:
    program = replace(build([0, 1_000], [0, 0], lanes=(1,)), python_lanes=2)
    own = np.array([12_000_000.0, 1_000.0])
    plan = replace(make_plan(program, HostModel()), own_ns=own, gil_ns=own)
    assert replay(plan).lane_end_ns == (12_001_000, 5_001_000)


def test_marks_that_contradict_each_other_do_not_hang() -> None:
    put, get = (Waits.PUT, 0), (Waits.GET, 0)
    program = build(
        [0, 0, 0, 0],
        [100] * 4,
        waits={0: get, 1: put, 2: get, 3: put},
        items={0: 1, 1: 0, 2: 0, 3: 1},
        lanes=(2,),
        capacity=(0,),
    )
    assert replay(make_plan(program, HostModel())).stuck == 1
