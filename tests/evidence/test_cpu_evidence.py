from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from pytest_tokbudget.analysis.cpu_summary import summarize_cpu
from pytest_tokbudget.evidence.cpu import CpuEvidence
from pytest_tokbudget.records.cpu import CpuRecord
from pytest_tokbudget.records.marks import MarkSeries
from tests.evidence.fake_pyspy import fake_pyspy

ROOT = str(Path(__file__).parents[2])


def attached() -> list[str]:
    """What of ours lives in or beside this process."""
    threads = [one.name for one in threading.enumerate() if one.name.startswith("tokbudget-")]
    children = [one.name() for one in psutil.Process().children(recursive=True)]
    return threads + children


def burn(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(2000))


@pytest.mark.alone
def test_one_record_of_everything_and_nothing_left_attached() -> None:
    before = attached()
    callbacks = list(gc.callbacks)
    evidence = CpuEvidence()
    evidence.start()
    assert len(attached()) == len(before) + 3
    burn(1.0)
    gc.collect()
    evidence.stop()
    assert attached() == before
    assert gc.callbacks == callbacks
    marks = [MarkSeries(worker="main", role="trainer", native_id=os.getpid(), times_ns=[1])]
    record = msgspec.json.decode(msgspec.json.encode(evidence.record(marks)), type=CpuRecord)
    assert record.unavailable == {}
    assert record.clocks is not None
    assert record.interpreter is not None
    assert record.interpreter.wakes > 10
    assert 2 in record.pauses.generation
    assert record.start_ns <= record.pauses.start_ns[-1] <= record.end_ns
    summary = summarize_cpu(record, [], marks, (record.start_ns, record.end_ns), ROOT)
    assert [one.role for one in summary.threads if one.tid == os.getpid()] == ["trainer"]
    hot = summary.hot_frames[0]
    assert (hot.function, hot.file) == ("burn", "tests/evidence/test_cpu_evidence.py")


def test_an_interrupted_start_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = attached()

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_tokbudget.evidence.stacks.StackSampler.start", interrupted)
    evidence = CpuEvidence()
    with pytest.raises(KeyboardInterrupt):
        evidence.start()
    evidence.stop()
    assert attached() == before


@pytest.mark.alone
def test_without_a_sampler_the_clocks_still_come(tmp_path: Path) -> None:
    evidence = CpuEvidence(fake_pyspy(tmp_path, "refused"))
    evidence.start()
    burn(0.3)
    evidence.stop()
    record = evidence.record()
    assert record.stacks is None
    assert "SYS_PTRACE" in record.unavailable["stacks"]
    assert record.clocks is not None
    summary = summarize_cpu(record, [], [], (record.start_ns, record.end_ns))
    assert summary.threads
    assert "py-spy may not look into this process" in summary.unavailable["stacks"]


PROGRAM = """
import ctypes, os, sys, time
from pytest_tokbudget.evidence.cpu import CpuEvidence
if sys.argv[1] == "private":
    prctl = ctypes.CDLL(None).prctl
    prctl(24, 19, 0, 0, 0)  # PR_CAPBSET_DROP: root's children lose CAP_SYS_PTRACE
    prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
evidence = CpuEvidence()
evidence.start()
if sys.argv[1] == "exits":
    import psutil
    print(*(one.pid for one in psutil.Process().children(recursive=True)), flush=True)
    os._exit(0)
time.sleep(0.3)
evidence.stop()
print(evidence.record().unavailable)
"""


def run_program(how: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    return done.stdout


def test_a_target_that_exits_leaves_no_process_behind() -> None:
    pids = [int(one) for one in run_program("exits").split()]
    assert pids
    left = [psutil.Process(one) for one in pids if psutil.pid_exists(one)]
    _, alive = psutil.wait_procs(left, timeout=30)
    assert alive == []


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_process_that_refuses_to_be_looked_at_says_so() -> None:
    said = run_program("private")
    assert "stacks" in said
    assert "PR_SET_DUMPABLE" in said
