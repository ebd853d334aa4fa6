"""Sentences on the host: the limiting role, then what costs most, then at most one on queues."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pytest_tokbudget.analysis.cpu_summary import summarize_cpu
from pytest_tokbudget.records.cpu import CollectorPauses, CpuRecord, Interpreter
from pytest_tokbudget.records.marks import MarkSeries, QueueSeries
from tests.analysis.cpu_records import BEGIN_NS, clock_of, record_of, stacks_of

MS = 1_000_000
WINDOW = (0, 2_000 * MS)
MARKS = [
    MarkSeries(worker="target-0", role="target", times_ns=[1]),
    MarkSeries(worker="post-0", role="post", times_ns=[1]),
    MarkSeries(worker="drafter-0", role="drafter", counts=True, times_ns=[1]),
]
LATE = Interpreter(
    free_threaded_build=False,
    gil_enabled=True,
    switch_interval_ms=5.0,
    wakes=100,
    wake_late_ms=(5.0, 6.0, 9.0),
    wake_core_ms=0.0,
)
FSYNC = "main:1>write:3"


def calls(queue: str, side: str, worker: str, wait_ms: float) -> QueueSeries:
    """A call every 10 ms that lasts ``wait_ms``."""
    starts = [at * 10 * MS for at in range(200)]
    return QueueSeries(
        queue=queue,
        side=side,
        worker=worker,
        start_ns=starts,
        end_ns=[one + round(wait_ms * MS) for one in starts],
        sequence=list(range(200)),
        depth=[-1] * 200,
    )


QUEUES = [
    calls("computed", "put", "target-0", 0.0),
    calls("computed", "get", "post-0", 8.0),
    calls("states", "put", "post-0", 0.1),
    calls("states", "get", "drafter-0", 3.0),
]


def record(collected_ms: int, fsync: int, *, who: str = "target") -> CpuRecord:
    """One second of two busy threads, of which ``who`` writes for ``fsync`` per cent."""
    looks = {
        "target-0": [FSYNC if who == "target" else "main:1>step:2"] * fsync
        + ["main:1>step:2"] * (100 - fsync),
        "drafter-0": [FSYNC if who == "drafter" else "main:1>train:2"] * fsync
        + ["main:1>train:2"] * (100 - fsync),
    }
    clocks = [
        clock_of(at, name, [50.0 * one for one in range(11)], role=name.partition("-")[0])
        for at, name in enumerate(looks, start=100)
    ]
    stacks = stacks_of(looks, source={"write": "os.fsync(file.fileno())"})
    return replace(
        record_of(stacks, clocks, workers=[100, 101]),
        interpreter=LATE,
        pauses=CollectorPauses(
            start_ns=[BEGIN_NS],
            end_ns=[BEGIN_NS + collected_ms * MS],
            generation=[2],
            native_id=[100],
        ),
    )


def said(of: CpuRecord, queues: Sequence[QueueSeries] = QUEUES) -> list[str]:
    return summarize_cpu(of, queues, MARKS, WINDOW, "/app").sentences


def kinds(sentences: Sequence[str]) -> list[str]:
    """A word of each."""
    words = ("limits", "GIL", "collector", "fsync", "in get of", "by line of")
    return [next(word for word in words if word in one) for one in sentences]


def test_what_costs_comes_before_queues_and_lines() -> None:
    found = said(record(330, 5))

    assert kinds(found)[:5] == ["limits", "GIL", "collector", "fsync", "in get of"]
    assert found[0].startswith("target limits")
    assert "collector took 33.0 %" in found[2]


@pytest.mark.parametrize(
    ("collected_ms", "fsync", "first"), [(330, 5, "collector"), (20, 40, "fsync")]
)
def test_the_costlier_is_told_first(collected_ms: int, fsync: int, first: str) -> None:
    assert kinds(said(record(collected_ms, fsync)))[2] == first


def test_what_a_role_does_that_only_waits_for_the_limiting_one_is_told_last() -> None:
    assert kinds(said(record(20, 40, who="drafter")))[2:4] == ["collector", "fsync"]


def test_all_starved_queues_share_one_sentence() -> None:
    (only,) = (one for one in said(record(20, 5)) if "in get of" in one)

    assert only == (
        "drafter waited 30% of its time in get of 'states' (fed by post), "
        "post 80% in get of 'computed' (fed by target)"
    )


def test_queues_come_first_where_nothing_else_is_said() -> None:
    empty = CpuRecord(start_ns=0, end_ns=0)

    assert kinds(said(empty)) == ["limits", "in get of"]
