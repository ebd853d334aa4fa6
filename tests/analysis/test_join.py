from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.analysis.causes import Cause, HostLabels
from pytest_tokbudget.analysis.gap_classes import StackSamples
from pytest_tokbudget.analysis.join import HostLateSplit, split_host_late
from pytest_tokbudget.analysis.late_sentences import late_sentences
from pytest_tokbudget.analysis.ledger import build_ledger
from pytest_tokbudget.analysis.replay_program import Frame, LabelKind, QueueOps
from pytest_tokbudget.analysis.timeline import ThreadInfo, Timeline
from pytest_tokbudget.analysis.trace_samples import TraceSamples, trace_samples
from pytest_tokbudget.records.base import Unavailable
from tests.analysis.cpu_records import BEGIN_NS, ROUND_NS, clock_of, record_of, stacks_of
from tests.trace_builder import LOADER, MAIN, TraceBuilder

STEP_NS, STEPS = 10_000_000, 20
FRAMES = (Frame("collate", "data.py", 7), Frame("get", "loop.py", 3), Frame("read", "loader.py", 9))
KINDS = (LabelKind.PYTHON, LabelKind.WAIT, LabelKind.PYTHON)


def late_host() -> Timeline:
    """Steps of 10 ms: the host launches 6 ms late, a kernel runs for 4 ms."""
    trace = TraceBuilder(BEGIN_NS)
    for step in range(STEPS):
        at = step * STEP_NS
        trace.launch(at + 5_990_000, at + 6_000_000, 4_000_000)
    trace.call("cudaGetDevice", 0, 1_000, thread=LOADER)
    return trace.timeline(0, STEPS * STEP_NS, steps=STEPS)


def samples_at(rows: list[tuple[int, int, int]], on_cpu: float = 1.0) -> TraceSamples:
    """(thread, step, frame), each 3 ms into its step."""
    table = np.array(rows, np.int64).reshape(-1, 3)
    return TraceSamples(
        StackSamples(
            thread=table[:, 0].astype(np.int32),
            time_ns=BEGIN_NS + table[:, 1] * STEP_NS + 3_000_000,
            frame=table[:, 2].astype(np.int32),
            frames=FRAMES,
            kinds=KINDS,
        ),
        np.full(len(table), on_cpu),
    )


def thread_of(timeline: Timeline, native_id: int) -> int:
    return next(at for at, one in enumerate(timeline.threads) if one.native_id == native_id)


def split_by(
    frames: list[int], on_cpu: float = 1.0, collections: HostLabels | None = None
) -> HostLateSplit:
    timeline = late_host()
    main = thread_of(timeline, MAIN)
    sampled = samples_at([(main, step, one) for step, one in enumerate(frames)], on_cpu)
    split = split_host_late(timeline, sampled, collections)
    assert isinstance(split, HostLateSplit)
    return split


def test_the_late_host_is_named_by_its_stack() -> None:
    split = split_by([0] * 10)
    row = split.rows[0]
    assert (row.cause, row.frame, row.samples, row.agreeing) == (Cause.PYTHON, FRAMES[0], 10, 10)
    assert row.ms_per_step == pytest.approx(5.99, abs=0.01)
    assert row.ci is not None
    assert row.ci[0] < 1.0 <= row.ci[1] + 1e-9


def test_labels_make_the_rows_of_the_ledger() -> None:
    ledger = build_ledger(late_host(), split_by([0] * 10).labels)
    assert not isinstance(ledger, Unavailable)
    rows = {one.cause: one.ns for one in ledger.devices[0].rows}
    assert rows[Cause.PYTHON] / STEPS / 1e6 == pytest.approx(5.99, abs=0.01)
    assert Cause.HOST_UNATTRIBUTED not in rows


def test_samples_that_disagree_cover_only_their_share() -> None:
    split = split_by([0, 0, 0, 0, 1])
    by_cause = {one.cause: one for one in split.rows}
    assert by_cause[Cause.PYTHON].ms_per_step == pytest.approx(0.8 * 5.99, abs=0.01)
    assert by_cause[Cause.HOST_UNATTRIBUTED].ms_per_step == pytest.approx(0.2 * 5.99, abs=0.01)


@pytest.mark.parametrize("frames", [[], [0, 0], [0, 0, 1, 1]])
def test_too_few_agreeing_samples_leave_it_unattributed(frames: list[int]) -> None:
    row = split_by(frames).rows[0]
    assert (row.cause, row.frame, row.samples) == (Cause.HOST_UNATTRIBUTED, None, len(frames))


def test_running_python_without_a_cpu_waits_for_the_lock_or_a_core() -> None:
    assert split_by([0] * 10, on_cpu=0.2).rows[0].cause == Cause.INTERPRETER_WAIT
    assert split_by([0] * 10, on_cpu=float("nan")).rows[0].cause == Cause.PYTHON


def test_collections_need_no_samples() -> None:
    begin = BEGIN_NS + np.arange(STEPS) * STEP_NS + 1_000_000
    pauses = HostLabels(
        thread=np.ones(STEPS, np.int32),
        start_ns=begin,
        end_ns=begin + 2_000_000,
        cause=np.full(STEPS, Cause.GARBAGE_COLLECTION, np.int8),
    )
    by_cause = {one.cause: one for one in split_by([], collections=pauses).rows}
    assert by_cause[Cause.GARBAGE_COLLECTION].ms_per_step == pytest.approx(2.0)
    assert by_cause[Cause.HOST_UNATTRIBUTED].ms_per_step == pytest.approx(3.99, abs=0.01)


def test_a_data_wait_is_followed_to_the_producers() -> None:
    timeline = late_host()
    main, loader = thread_of(timeline, MAIN), thread_of(timeline, LOADER)
    rows = [(main, step, 1) for step in range(8)] + [(loader, step, 2) for step in range(8)]
    steps = BEGIN_NS + np.arange(STEPS) * STEP_NS
    queues = QueueOps(
        thread=np.repeat([main, loader], STEPS).astype(np.int32),
        queue=np.zeros(2 * STEPS, np.int32),
        get=np.repeat([True, False], STEPS),
        item=np.tile(np.arange(STEPS), 2),
        start_ns=np.concatenate((steps, steps + 5_000_000)),
        end_ns=np.concatenate((steps + 5_500_000, steps + 5_100_000)),
        names=("batches",),
        capacity=(4,),
    )
    split = split_host_late(timeline, samples_at(rows), None, queues)
    assert isinstance(split, HostLateSplit)
    row = split.rows[0]
    assert (row.cause, row.queue, row.producers) == (Cause.DATA_WAIT, "batches", (FRAMES[2], 1.0))


def test_stacks_become_samples_in_the_traces_clock() -> None:
    looks = {
        "MainThread": ["step:1>collate:7", "step:1>collate:8", "step:1>collate:8"] * 4,
        "unknown": ["f:1"] * 12,
    }
    stacks = stacks_of(looks, blind=[(BEGIN_NS + ROUND_NS, BEGIN_NS + 3 * ROUND_NS)])
    record = record_of(stacks, [clock_of(100, "MainThread", [0.0, 50.0])])
    found = trace_samples(record, [ThreadInfo(100, "MainThread")], 1_000, "/app")
    assert found is not None
    # Twelve rounds less the one inside the blind stretch; both lines are one function.
    assert len(found.samples.time_ns) == 11
    assert found.samples.frames[0] == Frame("collate", "collate.py", 8)
    assert set(found.samples.frame.tolist()) == {0}
    assert found.samples.time_ns[0] == BEGIN_NS + 1_000
    assert found.on_cpu[0] == pytest.approx(0.5, rel=0.3)


def test_a_librarys_stack_has_the_users_line_beside_its_innermost_frame() -> None:
    library = "synchronize@/usr/lib/python3.12/site-packages/torch/cuda/streams.py:254"
    stacks = stacks_of({"MainThread": [f"step:1>post:7>{library}"] * 3 + [library] * 2})
    found = trace_samples(record_of(stacks), [ThreadInfo(100, "MainThread")], 0, "/app")
    assert found is not None
    frames, samples = found.samples.frames, found.samples
    assert {frames[one].function for one in samples.frame} == {"synchronize"}
    assert [frames[one] for one in samples.site[:3]] == [Frame("post", "post.py", 7)] * 3
    assert samples.site[3:].tolist() == [-1, -1]


def test_the_largest_named_parts_are_told_in_a_sentence() -> None:
    timeline = late_host()
    (sentence,) = late_sentences(split_by([0] * 9 + [1]).rows, timeline)

    assert sentence == (
        "cuda:0 waited for its host in the trace: 90 % MainThread in collate (data.py:7) "
        "(9 of 10 samples, 95 % interval 60 … 98 %)"
    )
    assert late_sentences(split_by([]).rows, timeline) == [], "nothing is known"
