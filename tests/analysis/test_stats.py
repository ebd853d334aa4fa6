"""What the storing room asks of the statistics."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from pytest_tokbudget.analysis.settled import LEARNED_DEGREES, baseline_spread
from pytest_tokbudget.analysis.stats import change_interval, percent_of_rate, pool_learned
from pytest_tokbudget.records.baseline import Baseline, Spread, StoredSession
from pytest_tokbudget.records.machine import MachineClass, Software
from pytest_tokbudget.records.workload import Workload

SAMPLES = st.lists(st.floats(-0.05, 0.05), min_size=2, max_size=6, unique=True)


def baseline_of(x: list[float], learned: Spread | None = None) -> Baseline:
    anchor = [
        StoredSession(
            tok_s=exp(-value),
            steps=1,
            seconds=1.0,
            warmup_steps=0,
            warmup_seconds=0.0,
            job=f"job {index}",
            commit=None,
            host_hash="h",
            unix_s=0,
            software=Software(python="3", tokbudget="0"),
        )
        for index, value in enumerate(x)
    ]
    return Baseline(
        workload=Workload(path="t.py", qualname="t", nodeid="t.py::t"),
        machine_class=MachineClass(slug="m", fields={}),
        token_kind="real",
        anchor=anchor,
        learned=learned,
        log=[],
    )


def test_percent_is_of_the_rate_and_negative_is_slower() -> None:
    assert percent_of_rate(-np.log(0.95)) == pytest.approx(-5.0)
    assert percent_of_rate(-np.log(1.1)) == pytest.approx(10.0)


@given(SAMPLES, SAMPLES)
def test_interval_is_students_with_pooled_variance(old: list[float], new: list[float]) -> None:
    old, new = [50 * x for x in old], [50 * x for x in new]
    first, second = np.var(old, ddof=1), np.var(new, ddof=1)
    change, (low, high) = change_interval(old, new)
    assert low <= change <= high
    large, small = max(first, second), min(first, second)
    if large < 2 * small and small > 0.01:
        expected = reference.ttest_ind(new, old).confidence_interval(0.99)
        assert low == pytest.approx(percent_of_rate(float(expected.high)), rel=1e-6)
        assert high == pytest.approx(percent_of_rate(float(expected.low)), rel=1e-6)


def test_interval_widens_by_the_variance_between_jobs() -> None:
    old, new = [0.0, 0.01, -0.01], [0.05, 0.06, 0.04]
    plain = change_interval(old, new)
    wide = change_interval(old, new, between=2.0)
    width = [np.log1p(one[1][1] / 100) - np.log1p(one[1][0] / 100) for one in (plain, wide)]
    assert width[1] / width[0] == pytest.approx(sqrt((2 / 3 + 2) / (2 / 3)))


def test_two_single_sessions_have_a_change_and_no_interval() -> None:
    change, (low, high) = change_interval([0.0], [0.1])
    assert change == pytest.approx(percent_of_rate(0.1))
    assert (low, high) == (-100.0, float("inf"))
    known = Spread(variance=0.01**2, degrees=10.0)
    assert change_interval([0.0], [0.1], known=known)[1][1] < 0


def test_no_sessions_have_no_change() -> None:
    with pytest.raises(ValueError, match="0 old, 1 new"):
        change_interval([], [0.1])


def test_learned_is_worth_at_most_ten_degrees_and_keeps_its_jobs() -> None:
    learned = pool_learned(baseline_of([0.0, 0.01, -0.01, 0.02] * 4))
    assert learned.degrees == LEARNED_DEGREES
    assert learned.jobs == 16
    few = baseline_of([0.0, 0.01, -0.01])
    assert pool_learned(few) == baseline_spread(few)


def test_what_is_learned_fades_over_refreshes() -> None:
    """A spread once learned loses its weight as refreshes with another spread follow."""
    learned: Spread | None = Spread(variance=0.02**2, degrees=10.0, jobs=5)
    anchor = [0.01, -0.01, 0.005, -0.005, 0.0]
    found = []
    for _ in range(20):
        learned = pool_learned(baseline_of(anchor, learned))
        found.append(learned.variance)
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(float(np.var(anchor, ddof=1)), rel=0.05)
