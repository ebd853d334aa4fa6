"""What a hot frame costs of its own threads' time, and what those are to the rate."""

from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.cpu_summary import summarize_cpu
from pytest_tokbudget.analysis.frame_threads import FrameThreads
from pytest_tokbudget.records.marks import MarkSeries
from pytest_tokbudget.records.result import FrameResult
from tests.analysis.cpu_records import clock_of, record_of, stacks_of

IDLE = "run:1>wait@/usr/lib/python3.11/threading.py:320"
COUNTS = MarkSeries(worker="main", native_id=100, counts=True, times_ns=[1])


def frames_of(looks: dict[str, list[str]], cpu_ms: dict[str, float]) -> dict[str, FrameResult]:
    """Hot frames by function; the first thread counts the steps."""
    rounds = len(next(iter(looks.values())))
    clocks = [
        clock_of(100 + at, name, [cpu_ms.get(name, 0.0) * one / 10 for one in range(11)])
        for at, name in enumerate(looks)
    ]
    assert rounds == 100
    found = summarize_cpu(
        record_of(stacks_of(looks), clocks, workers=[100]), [], [COUNTS], (0, 1), "/app"
    )
    return {one.function: one for one in found.hot_frames}


def test_a_busy_thread_among_many_idle_ones_is_shown_busy() -> None:
    looks = {"main": ["step:1>work:2"] * 99 + ["step:1>log:3"]}
    looks |= {f"idle-{n}": [IDLE] * 100 for n in range(299)}

    work = frames_of(looks, {"main": 1000.0})["work"]

    assert work.share == pytest.approx(0.99 / 300, rel=0.02), "of all samples, as ever"
    assert work.thread_share == pytest.approx(0.99)
    assert work.threads_are == "counting"


def test_a_function_that_others_run_too_is_told_for_each_role() -> None:
    looks = {"main": ["step:1>work:2"] * 75 + ["step:1>log:3"] * 25}
    looks |= {f"helper-{n}": ["loop:1>work:2"] * 5 + [IDLE] * 95 for n in range(12)}
    clocks = [
        clock_of(100 + at, name, [0.0] + [50.0] * 10 if at else [100.0 * n for n in range(11)])
        for at, name in enumerate(looks)
    ]
    record = record_of(stacks_of(looks), clocks, workers=[100])
    found = summarize_cpu(record, [], [COUNTS], (0, 1), "/app").hot_frames

    mine, theirs = (one for one in found if one.function == "work")
    assert (mine.threads, mine.threads_are) == (["main"], "counting")
    assert mine.thread_share == pytest.approx(0.75)
    assert (len(theirs.threads), theirs.threads_are) == (12, None)
    assert theirs.thread_share == pytest.approx(0.05)


def test_other_threads_cost_their_cpu_time() -> None:
    looks = {"main": ["step:1>work:2"] * 100, "poll": ["poll:4"] * 100, "spin": ["spin:5"] * 100}

    found = frames_of(looks, {"main": 500.0, "poll": 20.0, "spin": 500.0})

    assert found["work"].thread_share == pytest.approx(1.0), "it waited for nobody"
    assert found["spin"].thread_share == pytest.approx(0.5)
    assert found["poll"].thread_share == pytest.approx(0.02)
    assert [found[one].threads_are for one in ("work", "spin", "poll")] == ["counting", None, None]


def test_what_threads_are_is_told_by_their_marks() -> None:
    marks = [
        MarkSeries(worker="d0", role="drafter", native_id=101, counts=True, times_ns=[1]),
        MarkSeries(worker="t0", role="target", native_id=102, times_ns=[1]),
        MarkSeries(worker="t1", role="target", native_id=103, times_ns=[1]),
        MarkSeries(worker="unread", role="target", native_id=0, times_ns=[1]),
    ]
    names = ["x", "d0", "t0", "t1", "twin", "twin", "unread"]
    stacks = stacks_of({str(at): [IDLE] for at in range(len(names))})
    for at, thread in enumerate(stacks.threads):
        number = 0 if names[at] == "unread" else thread.native_id
        stacks.threads[at] = type(thread)(name=names[at], native_id=number)

    kind = FrameThreads.of(None, stacks, marks, "target").kind

    assert [kind(one) for one in (["d0"], ["t0", "t1"], ["x", "t0"], ["x"], ["unread"])] == [
        "counting",
        "limiting",
        None,
        None,
        None,
    ]
    alone = FrameThreads.of(None, stacks, marks)
    assert alone.kind(["t0"]) is None, "no role limits alone"


def test_a_name_that_two_threads_have_counts_only_where_both_do() -> None:
    stacks = stacks_of({"a": [IDLE], "b": [IDLE]})
    for at, thread in enumerate(stacks.threads):
        stacks.threads[at] = type(thread)(name="MainThread", native_id=thread.native_id)

    assert FrameThreads.of(None, stacks, [COUNTS]).kind(["MainThread"]) is None
