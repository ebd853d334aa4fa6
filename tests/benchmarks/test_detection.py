"""The detection benchmark runs on simulated and on recorded sessions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import detection
from benchmarks.detection_worlds import WORLDS, recorded, resampled


def test_noise_far_above_the_tolerance_is_undecided_and_far_below_is_not() -> None:
    rng = np.random.default_rng(0)
    loud = detection.simulated(rng, WORLDS[0], 0.08, 0.03, 0, 300)
    quiet = detection.simulated(rng, WORLDS[0], 0.001, 0.03, 10, 300)
    assert loud.undecided_0 > 95
    assert (quiet.undecided_0, quiet.false_alarms, quiet.missed_2, quiet.caught_2) == (0, 0, 0, 100)
    assert 20 < quiet.regressed_1 < 80


def test_rank_tests_over_correlated_steps_cry_wolf() -> None:
    rows = {row.rule: row for row in detection.on_peers(np.random.default_rng(0), 0.01, 0.9, 100)}
    assert rows["Mann-Whitney over steps"].false_alarms > 10
    assert rows["pytest-benchmark mean:5%"].false_alarms < 10


def _write_series(directory: Path) -> None:
    rng = np.random.default_rng(1)
    for session, slowdown in enumerate((0.0, 0.0, 0.0, 0.08), start=1):
        step_ms = 10 * (1 + slowdown) * np.exp(rng.normal(0, 0.01, 400))
        content = {
            "session": session,
            "injected_slowdown": slowdown,
            "gpu_bound": {"host_end_ms": np.cumsum(step_ms).tolist()},
        }
        path = directory / f"session-{session:02}.json"
        path.write_text(json.dumps(content), encoding="utf-8")


def test_recorded_sessions_are_resampled_and_a_true_slow_down_is_caught(tmp_path: Path) -> None:
    _write_series(tmp_path)
    rng = np.random.default_rng(2)
    series = recorded(tmp_path, "gpu_bound")
    x = resampled(rng, series[:3], (50, 4))
    assert x.shape == (50, 4)
    assert float(x.mean()) == pytest.approx(np.log(10), abs=0.01)
    assert len(np.unique(x)) > 100
    rows = detection.on_recorded(rng, tmp_path, "gpu_bound", 0.02, 200)
    assert [row.what for row in rows] == ["gpu_bound", "gpu_bound +8 %"] * 2
    assert all(row.false_alarms == 0 and row.caught_2 == 100 for row in rows)


def test_a_directory_without_series_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"expected session-\*\.json"):
        recorded(tmp_path, "gpu_bound")
