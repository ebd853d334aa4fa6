from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.analysis.gap_classes import StackSamples, name_gaps, step_positions
from pytest_tokbudget.analysis.replay_decode import Decoded, decode
from pytest_tokbudget.analysis.replay_program import Frame, LabelKind
from pytest_tokbudget.analysis.timeline import Window
from tests.trace_builder import TraceBuilder

STEP_NS, STEPS, BEGIN_NS = 1_000_000, 10, 1_000_000_000
FRAMES = (Frame("collate", "data.py", 7), Frame("forward", "model.py", 3), Frame("nap", "a.py", 1))
KINDS = (LabelKind.PYTHON, LabelKind.PYTHON, LabelKind.SLEEP)


def stepping() -> tuple[Decoded, Window]:
    """Ten steps of two launches; the gap before the first one of a step is 900 µs long."""
    trace = TraceBuilder()
    for step in range(STEPS):
        for at in (900_000, 950_000):
            trace.launch(step * STEP_NS + at, step * STEP_NS + at + 5_000, 1_000, call_dur=50_000)
    timeline = trace.timeline(0, STEPS * STEP_NS, steps=STEPS)
    return decode(timeline), timeline.window


def sampled(frames: list[int], offset_ns: int = 400_000) -> StackSamples:
    """One sample a step, ``offset_ns`` into it."""
    return StackSamples(
        thread=np.zeros(len(frames), np.int32),
        time_ns=BEGIN_NS + np.arange(len(frames)) * STEP_NS + offset_ns,
        frame=np.array(frames, np.int32),
        frames=FRAMES,
        kinds=KINDS,
    )


def test_a_class_is_named_by_the_frame_its_samples_share() -> None:
    decoded, window = stepping()
    labels = name_gaps(decoded, sampled([0, 0, 0, 0, 1]), window)
    assert len(labels.start_ns) == STEPS
    assert set(labels.frame) == {0}
    assert labels.samples == (4, 0, 0)
    # Four of five samples: as much of each gap.
    assert labels.end_ns - labels.start_ns == pytest.approx(np.full(STEPS, 720_000), abs=1)


def test_a_label_takes_the_kind_of_its_frame() -> None:
    decoded, window = stepping()
    assert set(name_gaps(decoded, sampled([2, 2, 2]), window).kind) == {LabelKind.SLEEP}


@pytest.mark.parametrize(
    "frames", [[], [0, 0], [0, 0, 0, 1, 1, 1], [0, 0, -1], [0, 0, 0, -1, -1, -1]]
)
def test_too_few_samples_or_too_many_frames_name_nothing(frames: list[int]) -> None:
    decoded, window = stepping()
    assert not len(name_gaps(decoded, sampled(frames), window).start_ns)


def test_samples_during_calls_and_in_short_gaps_name_nothing() -> None:
    decoded, window = stepping()
    assert not len(name_gaps(decoded, sampled([0] * 8, offset_ns=960_000), window).start_ns)


def test_positions_by_number_need_steps_that_repeat() -> None:
    window = Window(0, 100, 3)
    starts = np.arange(7, dtype=np.int64)
    repeating = np.array([1, 2, 1, 2, 1, 2, 9], np.int8)
    positions = step_positions(starts, repeating, window)
    assert positions is not None
    assert list(positions) == [0, 1, 0, 1, 0, 1, -1]
    assert step_positions(starts, np.array([1, 2, 3, 4, 5, 6, 9], np.int8), window) is None


def test_positions_by_marks_leave_out_what_is_beyond_the_usual_step() -> None:
    ends = tuple(10 * one for one in range(1, 13))
    window = Window(0, 130, 12, ends)
    regular = [10 * step + at for step in range(12) for at in (1, 2)]
    starts = np.array(sorted([*regular, 15, 125]), np.int64)
    positions = step_positions(starts, np.zeros(len(starts), np.int8), window)
    assert positions is not None
    assert list(positions[:6]) == [0, 1, 0, 1, -1, 0]
    assert positions[-1] == -1
    # Events of a kind that comes as it likes shift nobody else's positions.
    kinds = np.zeros(len(starts) + 5, np.int8)
    extra = np.array([1, 2, 23, 33, 34], np.int64)
    order = np.argsort(np.concatenate((starts, extra)), kind="stable")
    kinds[len(starts) :] = 4
    mixed = step_positions(np.concatenate((starts, extra))[order], kinds[order], window)
    assert mixed is not None
    assert list(mixed[kinds[order] == 0]) == list(positions)
    assert set(mixed[kinds[order] == 4]) == {-1}
    irregular = np.array([1, 2, 11, 21, 22, 23, 31], np.int64)
    assert step_positions(irregular, np.zeros(7, np.int8), Window(0, 40, 4, ends[:4])) is None


def test_lines_of_one_function_agree_and_the_commonest_is_named() -> None:
    frames = (Frame("collate", "data.py", 7), Frame("collate", "data.py", 8), Frame("get", "q.py"))
    kinds = (LabelKind.PYTHON, LabelKind.PYTHON, LabelKind.WAIT)
    seen = np.array([0, 1, 1, 0, 1, 2, -1, -1], np.int32)
    everywhere, at_once = np.zeros(8, np.int32), np.zeros(8, np.int64)
    samples = StackSamples(everywhere, at_once, seen, frames, kinds)

    assert samples.agreed(np.arange(8)) == (1, 5, 5 / 8)
    assert samples.agreed(np.arange(5, 8)) is None, "one name in three samples is too few"
