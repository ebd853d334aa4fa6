"""From evidence alone: what the CPU evidence says of a DFlash that is worse than it could be."""

from __future__ import annotations

import pytest

from benchmarks.dflash_story import observe
from pytest_tokbudget.analysis.cpu_summary import CpuSummary
from pytest_tokbudget.analysis.limiting_role import LimitingRole

pytestmark = pytest.mark.alone

SECONDS = 3.0


def said(summary: CpuSummary) -> str:
    assert summary.unavailable == {}
    return "\n".join(summary.sentences)


def test_packing_on_the_critical_path_names_the_targets() -> None:
    summary = observe("simulated", "post=sync", SECONDS)
    assert said(summary)
    assert isinstance(summary.role, LimitingRole)
    assert summary.role.roles[0].role == "target"
    first = summary.hot_frames[:3]
    assert any("SimulatedTarget.post (examples/dflash/simulated.py:" in (one.caller or "")
               for one in first)  # fmt: skip
    assert "target-0" in {name for one in first for name in one.threads}


def test_spinning_threads_are_named_with_the_lock_they_hold() -> None:
    text = said(observe("simulated", "spin=2", SECONDS))
    assert "GIL contention: a thread that wakes runs Python" in text
    assert "most CPU: spin (examples/dflash/disturbances.py:" in text


def test_a_heap_of_garbage_names_the_collector() -> None:
    text = said(observe("simulated", "gc=heavy", SECONDS))
    assert "the garbage collector took" in text
    assert "GIL contention" not in text or "spin" not in text


def test_a_log_forced_to_the_disk_each_step_names_the_fsync() -> None:
    summary = observe("simulated", "log_every=1", SECONDS)
    frames = [one for one in summary.hot_frames if one.function == "StepLog.write"]
    assert frames, summary.hot_frames
    assert "os.fsync(self._file.fileno())" in said(summary)
