from __future__ import annotations

from pytest_tokbudget.analysis.cpu_summary import CpuSummary
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.result import FrameResult, ThreadResult
from pytest_tokbudget.reporting.cpu_text import cpu_text


def summary(
    frames: list[FrameResult], threads: list[ThreadResult], unavailable: dict[str, str]
) -> CpuSummary:
    return CpuSummary(
        hot_frames=frames,
        threads=threads,
        role=Unavailable("no queue"),
        sentences=["target limits the pipeline: " + "a long explanation " * 8],
        sampling="18,775 samples, 99 Hz, 45.0 s, clock ±0.2 ms",
        tables=None,
        unavailable=unavailable,
    )


def frame(cpu_s: float | None) -> FrameResult:
    return FrameResult(
        function="pack_hidden_states_of_a_very_long_name",
        file="src/training/pipeline/target_worker_with_a_long_name.py",
        line=1234,
        share=0.31,
        samples=5_820,
        threads=[f"target-{at}" for at in range(5)],
        caller="TargetWorker.step (src/training/pipeline/target_worker.py:77)",
        cpu_s=cpu_s,
    )


def test_everything_fits_eighty_columns() -> None:
    threads = [ThreadResult(name="t[x]; ü " * 9, tid=4, role="target", cpu_pct=31.0)]
    text = cpu_text(summary([frame(1.5)], threads, {}))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "18,775 samples, 99 Hz, 45.0 s" in text
    assert "31 %" in text
    assert "1.50" in text
    assert "+3" in text


def test_unknown_is_a_question_mark_and_missing_is_said() -> None:
    text = cpu_text(summary([frame(None)], [], {"stacks": "py-spy is not installed"}))
    assert "?" in text
    assert "0.00" not in text
    assert "no stacks: py-spy is not installed" in text


def test_it_can_be_written_in_ascii() -> None:
    cpu_text(summary([frame(1.0)], [], {}), encoding="ascii").encode("ascii")


def test_idle_threads_are_counted_not_listed() -> None:
    threads = [ThreadResult(name="busy", tid=1, cpu_pct=90.0)]
    threads += [ThreadResult(name=f"idle-{at}", tid=2 + at, cpu_pct=0.0) for at in range(7)]
    text = cpu_text(summary([], threads, {}))
    assert "idle-0" not in text
    assert "and 7 more" in text
