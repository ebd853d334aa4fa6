from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.queue_marks import producer_speeds, queue_ops
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.timeline import ThreadInfo
from pytest_tokbudget.records.marks import MarkSeries, QueueSeries
from tests.trace_builder import THREADS, TraceBuilder

OFFSET_NS = 1_000_000_000
MARKS = [MarkSeries(worker="train", native_id=101, times_ns=[])]
PLAIN_NS, TRACED_NS = 2_000, 4_000


def series(side: str, worker: str, starts: list[int], **more: object) -> QueueSeries:
    fields: dict[str, object] = {
        "end_ns": [one + 100 for one in starts],
        "sequence": list(range(len(starts))),
        "depth": [0] * len(starts),
        **more,
    }
    return QueueSeries(queue="batches", side=side, worker=worker, start_ns=starts, **fields)  # type: ignore[arg-type]


def infos() -> tuple[ThreadInfo, ...]:
    return tuple(ThreadInfo(one.native_id, one.name) for one in THREADS)


def test_calls_are_found_by_native_id_then_by_name() -> None:
    ops = queue_ops(
        [
            series("get", "train", [10, 20], capacity=4),
            series("put", "loader-0", [5], capacity=4),
            series("put", "elsewhere", [7]),
        ],
        MARKS,
        infos(),
        OFFSET_NS,
    )
    assert list(ops.thread) == [0, 0, 1]
    assert list(ops.get) == [True, True, False]
    assert list(ops.start_ns) == [OFFSET_NS + 10, OFFSET_NS + 20, OFFSET_NS + 5]
    assert ops.names == ("batches",)


def test_calls_that_gave_up_are_left_out_and_no_capacity_is_unbounded() -> None:
    ops = queue_ops([series("get", "train", [1, 2], sequence=[-1, 0])], MARKS, infos(), 0)
    assert list(ops.item) == [0]
    assert ops.capacity == (0,)


def test_a_loaders_speed_is_the_ratio_of_its_paces() -> None:
    plain = [100 + (PLAIN_NS + 100) * one for one in range(20)]
    traced = [100_000 + (TRACED_NS + 100) * one for one in range(20)]
    puts = series("put", "loader-0", plain + traced)
    trace = TraceBuilder()
    trace.launch(101_000, 110_000, 1_000)
    ops = queue_ops([puts], MARKS, infos(), OFFSET_NS)
    program = decode(trace.timeline(100_000, 200_000), queues=ops).program
    passes = {"timing_ns": (0, 50_000), "evidence_ns": (100_000, 200_000)}
    ((lane, speed),) = producer_speeds(program, [puts], infos(), MARKS, **passes)
    assert lane == 1
    assert speed == pytest.approx(PLAIN_NS / TRACED_NS)
    passes["timing_ns"] = (0, 3_000)
    assert producer_speeds(program, [puts], infos(), MARKS, **passes) == ()
