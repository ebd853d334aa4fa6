"""Blocked time, occupancy and dips of queues, against a slow oracle."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.analysis.queue_use import depth_steps, dips_below, queue_results
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.records.machine import Commit, MachineRecord, Software
from pytest_tokbudget.records.marks import QueueSeries
from pytest_tokbudget.records.run import Pass, RunRecord, WarmUp
from pytest_tokbudget.records.workload import Workload

SECOND = 1_000_000_000

Call = tuple[int, int, int, int]
"""start, end (s), sequence, depth"""


def series(side: str, *calls: Call, worker: str = "w", **fields: int) -> QueueSeries:
    starts, ends, numbers, depths = ([call[i] for call in calls] for i in range(4))
    return QueueSeries(
        queue="features",
        side=side,
        worker=worker,
        start_ns=[one * SECOND for one in starts],
        end_ns=[one * SECOND for one in ends],
        sequence=numbers,
        depth=depths,
        **fields,
    )


def session(start: int, end: int, *queues: QueueSeries) -> RunRecord:
    return RunRecord(
        workload=Workload(path="x", qualname="x", nodeid="x"),
        budget=Budget(steps=1),
        machine=MachineRecord(
            cpu_model="",
            usable_cores=1,
            memory_bytes=1,
            host_hash="",
            software=Software(python="", tokbudget=""),
            commit=Commit(),
        ),
        unix_offset_ns=0,
        pid=1,
        devices=[],
        warmup=WarmUp(steps=0, seconds=0, steady=True),
        passes=[
            Pass(
                kind="timing",
                start_ns=start * SECOND,
                end_ns=end * SECOND,
                steps=1,
                tokens={},
                tok_s=1,
            )
        ],
        marks=[],
        queues=list(queues),
    )


PUT = series("put", (0, 1, 0, 1), (2, 12, 1, 1), (15, 16, 2, 2), capacity=4, low_water=1)
GET = series("get", (1, 11, 0, 0), (17, 18, 1, 1), (19, 21, 2, 0))


def test_calls_are_clipped_to_the_timing_pass() -> None:
    (one,) = queue_results([session(10, 20, PUT, GET)])

    assert (one.put_blocked_s, one.get_blocked_s) == (2 + 1, 1 + 1 + 1)
    assert (one.put_blocked_pct, one.get_blocked_pct) == (30, 30)
    assert (one.puts, one.gets) == (2, 2)
    assert (one.capacity, one.low_water) == (4, 1)


def test_occupancy_is_a_share_of_time() -> None:
    (one,) = queue_results([session(10, 20, PUT, GET)])

    # depth 1 until 11, 0 until 12, 1 until 16, 2 until 18, 1 until 20
    assert one.occupancy == {"0": 0.1, "1": 0.7, "2": 0.2}
    assert one.mean_depth == 1.1
    assert one.low_water_dips == 1


def test_sessions_are_summed_and_workers_share_their_time() -> None:
    other = series("put", (10, 20, -1, 2), worker="v")

    (one,) = queue_results([session(10, 20, PUT, GET, other), session(10, 20, PUT, GET)])

    assert one.put_blocked_s == 3 + 10 + 3
    assert one.put_blocked_pct == 100 * 16 / 30
    assert one.puts == 4


def test_a_queue_that_cannot_tell_its_depth_has_no_occupancy() -> None:
    (one,) = queue_results([session(10, 20, series("put", (11, 12, 0, -1), low_water=1))])

    assert one.occupancy is None
    assert one.mean_depth is None
    assert one.low_water_dips is None
    assert one.put_blocked_s == 1


def test_no_queue_gives_no_result() -> None:
    assert queue_results([session(10, 20)]) == []


changes = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=12)


@given(changes, changes, st.integers(0, 40), st.integers(1, 20))
def test_depths_match_looking_at_every_moment(
    puts: list[tuple[int, int]], gets: list[tuple[int, int]], start: int, length: int
) -> None:
    sides = [
        QueueSeries(
            queue="q",
            side=side,
            worker="w",
            start_ns=[end for end, _ in calls],
            end_ns=[end for end, _ in calls],
            sequence=list(range(len(calls))),
            depth=[depth for _, depth in calls],
        )
        for side, calls in (("put", sorted(puts)), ("get", sorted(gets)))
    ]
    every = sorted([*sorted(puts), *sorted(gets)], key=lambda one: one[0])
    expected: dict[int, int] = {}
    for moment in range(start, start + length):
        before = [depth for end, depth in every if end <= moment]
        if before:
            expected[before[-1]] = expected.get(before[-1], 0) + 1

    depths, lengths = depth_steps(sides, start, start + length)

    found: dict[int, int] = {}
    for depth, ns in zip(depths.tolist(), lengths.tolist()):
        found[depth] = found.get(depth, 0) + ns
    assert {depth: ns for depth, ns in found.items() if ns} == expected


@given(st.lists(st.integers(0, 5)), st.integers(0, 6))
def test_dips_match_walking(depths: list[int], low_water: int) -> None:
    walked = sum(a >= low_water > b for a, b in itertools.pairwise(depths))

    assert dips_below(np.asarray(depths, dtype=np.int64), low_water) == walked
