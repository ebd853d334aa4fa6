"""Recorded files of ``record_evidence.py`` are read with all that they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import evidence_files
from benchmarks.causes import load_folder, read_program, study
from pytest_tokbudget.analysis.replay_program import CallKind
from pytest_tokbudget.analysis.trace_rows import COLUMNS

NAMES = ["cudaLaunchKernel", "gemm", "cudaDeviceSynchronize", "Context Sync"]
OFFSET_NS, BEGIN_NS, STEP_NS, STEPS = 5_000, 1_000_000_000, 100_000, 4
THREAD = 101


def rows() -> np.ndarray:
    """A canary of two launches, then four steps of one launch each, synchronized."""
    starts = [BEGIN_NS - 60_000, BEGIN_NS - 40_000]
    starts += [BEGIN_NS + STEP_NS * one + 50_000 for one in range(STEPS)]
    table = []
    for at, start in enumerate(starts):
        table.append([0, 0, -1, 0, 9, THREAD, start, 4_000, at + 1, 0, 0])
        table.append([0, 1, -1, 1, 0, 7, start + 6_000, 9_000, at + 1, 0, 0])
    end = BEGIN_NS + STEP_NS * STEPS
    table.append([0, 2, -1, 0, 9, THREAD, end - 20_000, 20_000, 99, 0, 0])
    table.append([0, 3, -1, 1, 0, -1, end - 20_000, 20_000, 99, 0, 0])
    return np.array(table, np.int64)


def write(path: Path) -> None:
    ends = [BEGIN_NS + STEP_NS * (one + 1) for one in range(STEPS)]
    window = {
        "start_ns": BEGIN_NS,
        "end_ns": ends[-1],
        "steps": STEPS,
        "step_ends_ns": ends,
        "unix_offset_ns": OFFSET_NS,
        "canary_ns": [BEGIN_NS - 70_000, BEGIN_NS - 20_000],
    }
    truth = {
        "cost_ms": 0.02,
        "error_ms": 0.001,
        "blocks": [[0, 0.08], [1, 0.1], [1, 0.1], [0, 0.09]],
        "canary_ms": [0.04, 0.05, 0.045],
    }
    meta = {
        "faults": ["none", "sleep"],
        "names": NAMES,
        "threads": [["MainThread", 0, THREAD, None, True]],
        "windows": {"none": window},
        "truth": {"sleep": truth},
        "sampled": {"none": {"frames_ms": [0.03], "sampling": "9 samples", "ms_per_step": 0.1}},
    }
    gets = np.array([[ends[0], ends[1]], [ends[0] + 900, ends[1] + 900], [0, 1], [0, 0]], np.int64)
    gets[:2] -= OFFSET_NS
    series = {
        "marks:MainThread": np.array(ends, np.int64) - OFFSET_NS,
        "queue:hidden:get:MainThread": gets,
    }
    assert len(COLUMNS) == 11
    evidence_files.write(path, rows(), meta, series)


def test_a_window_comes_with_its_truth_its_marks_and_its_canary(tmp_path: Path) -> None:
    write(tmp_path / "launch_bound_cuda.npz")
    (recording,) = load_folder(tmp_path)
    assert (recording.tag, recording.fault) == ("launch_bound_cuda", "none")
    assert recording.clean_ms == (0.08, 0.09)
    assert recording.main_thread == 0
    assert recording.sampled is not None
    # A share of 0.3 of the sampled time, in an unprofiled step of 0.085 ms.
    assert recording.sampled.frames_ms == pytest.approx([0.0255])
    program = read_program(recording)
    assert np.sum(program.host.kind == CallKind.GET) == 2
    assert program.queue_capacity == (4,)
    assert recording.canary is not None
    assert recording.canary.untraced_step_ms == 0.045
    assert len(recording.canary.program.device) == 2


def test_it_can_be_studied(tmp_path: Path) -> None:
    write(tmp_path / "launch_bound_cuda.npz")
    (recording,) = load_folder(tmp_path)
    studied = study(recording, None)
    assert abs(studied.what.identity) < 0.01
    assert studied.table.replayed_step_ms == pytest.approx(0.1, rel=0.2)
