from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.evidence_files import compact, read, write
from pytest_tokbudget.analysis.trace_rows import COLUMNS

BEGIN = 1_796_088_000_000_000_000


def recorded() -> tuple[np.ndarray, dict[str, object], dict[str, np.ndarray]]:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 5, (600, len(COLUMNS)))
    rows[:, 0] = np.arange(600) // 300
    rows[:, 1] = rng.integers(0, 3, 600)
    rows[:, 6] = BEGIN + np.tile(np.arange(300) * 1_000, 2) + 10**9 * rows[:, 0]
    windows = {
        fault: {
            "start_ns": BEGIN + 10**9 * at + 50_000,
            "end_ns": BEGIN + 10**9 * at + 250_000,
            "steps": 20,
            "step_ends_ns": [BEGIN + 10**9 * at + 50_000 + 10_000 * k for k in range(1, 21)],
            "unix_offset_ns": BEGIN,
        }
        for at, fault in enumerate(("none", "item"))
    }
    meta = {
        "faults": ["none", "item"],
        "names": ["gemm", "cudaLaunchKernel", "aten::add"],
        "threads": [["MainThread", 1, 2, None, True]],
        "windows": windows,
    }
    calls = np.stack([np.arange(50) * 10_000 + shift for shift in (0, 10, 20, 30)])
    return rows, meta, {"queue:q:get:train": calls, "marks:train": calls[1]}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    rows, meta, series = recorded()
    write(tmp_path / "one.npz", rows, meta, series, json.dumps([{"ph": "B"}]).encode())
    found = read(tmp_path / "one.npz")
    order = np.lexsort((rows[:, 6], rows[:, 3], rows[:, 0]))
    assert (found.rows == rows[order]).all()
    assert found.meta == meta
    assert found.spy == [{"ph": "B"}]
    assert all((found.series[name] == series[name]).all() for name in series)
    assert found.timeline("item").window.steps == 20


def test_compact_keeps_the_first_steps_of_the_chosen_faults(tmp_path: Path) -> None:
    rows, meta, series = recorded()
    write(tmp_path / "one.npz", rows, meta, series)
    compact(tmp_path / "one.npz", tmp_path / "small.npz", ("item",), 4)
    small = read(tmp_path / "small.npz")
    window = small.timeline("item").window
    assert (window.steps, window.wall_ns) == (4, 40_000)
    assert set(small.rows[:, 0].tolist()) == {0}
    assert small.rows[:, 6].min() == BEGIN + 10**9 + 30_000
    assert small.rows[:, 6].max() == BEGIN + 10**9 + 109_000
    assert (tmp_path / "small.npz").stat().st_size < (tmp_path / "one.npz").stat().st_size
