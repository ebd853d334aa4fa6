"""Calibration against series whose noise is known."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from pytest_tokbudget.analysis.calibration import ASSUMED_BETWEEN, Calibration, calibrate
from pytest_tokbudget.records.run import CanarySeries, RunRecord, WarmUp
from tests.storing.builders import run

Grid = list[list[float]]


def runs_of(x: Grid, canary: Grid | None = None) -> list[RunRecord]:
    """Sessions of −log rate ``x`` by job, and of a host loop that took ``exp(canary)`` ms."""
    found = []
    for job, row in enumerate(x):
        for session, value in enumerate(row):
            loop = 1e6 * exp(canary[job][session]) if canary else 1e6
            series = CanarySeries(
                name="host_loop", where="interleaved", times_ns=[0], durations_ns=[round(loop)]
            )
            found.append(run(1000 * exp(-value), job=f"job-{job}", canaries=[series]))
    return found


def calibrated(x: Grid, canary: Grid | None = None) -> Calibration:
    found = calibrate(runs_of(x, canary), session_s=30.0)
    assert isinstance(found, Calibration)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_variances_are_those_of_the_textbook_for_jobs_of_one_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = 0.02 * rng.standard_normal((4, 5)) + 0.03 * rng.standard_normal((4, 1))
    found = calibrated(x.tolist())
    within = x.var(axis=1, ddof=1).mean()
    between = max(0.0, (5 * x.mean(axis=1).var(ddof=1) - within) / 5 / within)
    assert found.spread == pytest.approx(np.sqrt(within))
    assert found.between == pytest.approx(between)
    assert found.assumed_between == pytest.approx(between)
    assert found.spread_ci[0] < found.spread < found.spread_ci[1]


def test_two_jobs_are_a_guess_and_one_job_says_nothing_of_others() -> None:
    x = [[0.0, 0.01, 0.02], [0.3, 0.31, 0.32]]
    two, one = calibrated(x), calibrated(x[:1])
    assert two.between is not None
    assert two.between > 100
    assert two.assumed_between == ASSUMED_BETWEEN
    assert one.between is None
    assert one.jobs == [pytest.approx([1000 * exp(-value) for value in x[0]])]


def test_a_canary_that_explains_the_noise_is_told_from_one_that_does_not() -> None:
    rng = np.random.default_rng(1)
    mood, own = 0.05 * rng.standard_normal((3, 5)), 0.005 * rng.standard_normal((3, 5))
    x = (mood + own).tolist()
    helping, useless = calibrated(x, mood.tolist()), calibrated(x, (-mood).tolist())
    assert helping.canary == "interleaved/host_loop"
    assert helping.canary_kept is not None
    assert helping.canary_kept < 0.1
    assert useless.canary_kept is not None
    assert useless.canary_kept > 2


def test_more_sessions_allow_a_smaller_tolerance_and_an_ab_the_smallest() -> None:
    found = calibrated([[0.0, 0.01, 0.02, 0.01, 0.0]])
    held = [one.tolerance for one in (*found.first, *found.settled, found.pairs) if one]
    assert len(held) == 7
    assert held[0] > held[1] > held[2]
    assert held[3] > held[5] > held[6]


def test_too_few_steady_sessions_are_no_calibration() -> None:
    unsteady = WarmUp(steps=9, seconds=1.0, steady=False, reason="it drifts")
    runs = runs_of([[0.0, 0.01, 0.02]])
    bad = [*runs[:2], run(1000, job="job-0", warmup=unsteady)]
    assert "2 of 3 sessions became steady" in str(calibrate(bad, 1.0))
    assert "needs at least 3 of one job" in str(calibrate(runs_of([[0.0], [0.1], [0.2]]), 1.0))
