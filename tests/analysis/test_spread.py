"""Pooled spreads, against sums written out and against simulation."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from pytest_tokbudget.analysis.settled import (
    about_anchor,
    baseline_spread,
    counted_appended,
    jobs_term,
)
from pytest_tokbudget.analysis.spread import (
    NO_SPREAD,
    SMALLEST_SPREAD,
    about_mean,
    deviation,
    pooled,
    pooled_or_larger,
    slowness,
    student_quantile,
)
from pytest_tokbudget.records.baseline import Baseline, Spread, StoredSession
from pytest_tokbudget.records.machine import MachineClass, Software
from pytest_tokbudget.records.workload import Workload

VALUES = st.lists(st.floats(-1, 1), min_size=2, max_size=8)


def stored(x: float, job: str) -> StoredSession:
    return StoredSession(
        tok_s=float(np.exp(-x)),
        steps=1,
        seconds=1.0,
        warmup_steps=0,
        warmup_seconds=0.0,
        job=job,
        commit=None,
        host_hash="h",
        unix_s=0,
        software=Software(python="3", tokbudget="0"),
    )


def baseline_of(
    anchor: list[tuple[float, str]],
    appended: list[tuple[float, str]] | None = None,
    learned: Spread | None = None,
) -> Baseline:
    return Baseline(
        workload=Workload(path="t.py", qualname="t", nodeid="t.py::t"),
        machine_class=MachineClass(slug="m", fields={}),
        token_kind="real",
        anchor=[stored(*one) for one in anchor],
        appended=[stored(*one) for one in appended or []],
        learned=learned,
        log=[],
    )


@given(VALUES, VALUES)
def test_pooled_is_the_sum_of_squares_over_the_degrees(a: list[float], b: list[float]) -> None:
    squares = sum((x - sum(a) / len(a)) ** 2 for x in a)
    squares += sum((x - sum(b) / len(b)) ** 2 for x in b)
    spread = pooled(about_mean(a), about_mean(b))
    assert spread.degrees == len(a) + len(b) - 2
    assert spread.variance == pytest.approx(squares / spread.degrees, abs=1e-12)


@given(VALUES, VALUES)
def test_pooled_or_larger_is_never_below_either_rule(a: list[float], b: list[float]) -> None:
    first, second = about_mean(a), about_mean(b)
    spread = pooled_or_larger(first, second)
    assert spread.degrees == first.degrees + second.degrees
    assert spread.variance >= pooled(first, second).variance - 1e-15
    assert spread.variance <= max(first.variance, second.variance) + 1e-15
    assert spread == pooled_or_larger(second, first)


def test_the_larger_is_taken_exactly_where_the_f_test_says_so() -> None:
    small = Spread(variance=0.01**2, degrees=8.0)
    limit = reference.f.ppf(0.975, 4, 8)
    just_within = Spread(variance=0.01**2 * limit * 0.999, degrees=4.0)
    just_beyond = Spread(variance=0.01**2 * limit * 1.001, degrees=4.0)
    assert pooled_or_larger(small, just_within) == pooled(small, just_within)
    assert pooled_or_larger(small, just_beyond).variance == just_beyond.variance


def test_spreads_below_the_smallest_never_disagree() -> None:
    tiny = Spread(variance=1e-12, degrees=10.0)
    assert pooled_or_larger(tiny, Spread(variance=1e-6, degrees=4.0)).variance < 1e-6


def test_nothing_known_changes_nothing() -> None:
    known = Spread(variance=0.01, degrees=3.0, jobs=2)
    assert pooled_or_larger(known, NO_SPREAD) == known
    assert about_mean([0.5]) == NO_SPREAD


def test_deviation_has_a_floor() -> None:
    assert deviation(Spread(variance=0.0, degrees=4.0)) == SMALLEST_SPREAD
    assert deviation(Spread(variance=0.04, degrees=4.0)) == pytest.approx(0.2)


@given(st.floats(0.9, 0.9999), st.floats(1, 200))
def test_student_quantile_is_students(probability: float, degrees: float) -> None:
    expected = reference.t.ppf(probability, degrees)
    assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9)


def test_slowness_is_the_negative_logarithm() -> None:
    assert slowness(np.e) == pytest.approx(-1.0)
    assert slowness(90.0) > slowness(100.0)


@pytest.mark.parametrize(
    ("degrees", "jobs", "expected"), [(9.9, 20, 2.0), (10.0, 4, 2.0), (10.0, 5, 1.0)]
)
def test_between_jobs_counts_half_once_the_baseline_is_settled(
    degrees: float, jobs: int, expected: float
) -> None:
    assert jobs_term(degrees, jobs) == expected


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 3), (1, 4, 2)])
def test_about_anchor_is_unbiased_where_jobs_differ_as_assumed(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    s, sessions, between = 0.01, 5, 2.0
    found = []
    for _ in range(1500):
        # The anchor's job and every later one lie s·√(J/2) about a common level.
        moods = rng.normal(0, s * sqrt(between / 2), 1 + len(sizes))
        anchor = moods[0] + rng.normal(0, s, sessions).mean()
        jobs = [list(mood + rng.normal(0, s, size)) for mood, size in zip(moods[1:], sizes)]
        spread = about_anchor(jobs, anchor, sessions, between)
        assert spread.degrees == sum(sizes)
        found.append(spread.variance)
    error = float(np.std(found)) / sqrt(len(found))
    assert abs(float(np.mean(found)) - s**2) < 4 * error


def test_baseline_spread_pools_anchor_appended_and_learned() -> None:
    anchor = [0.00, 0.01, -0.01, 0.005, -0.005]
    learned = Spread(variance=0.008**2, degrees=6.0, jobs=3)
    whole = baseline_of([(x, "a") for x in anchor], [(0.02, "b"), (0.0, "c")], learned)
    spread = baseline_spread(whole)
    assert (spread.degrees, spread.jobs) == (4 + 2 + 6, 6)
    # 12 degrees from 6 jobs: J = 1; about the anchor's mean, which is 0.
    squares = sum(x**2 for x in anchor) + 0.02**2 / (1 + 1 / 5 + 1) + 6 * 0.008**2
    assert spread.variance == pytest.approx(squares / 12)


def test_what_was_learned_long_ago_does_not_hide_a_wider_spread() -> None:
    anchor = [(x, "a") for x in (0.0, 0.05, -0.05, 0.03, -0.03)]
    learned = Spread(variance=0.003**2, degrees=10.0, jobs=5)
    own = about_mean([x for x, _ in anchor])
    assert baseline_spread(baseline_of(anchor, None, learned)).variance == pytest.approx(
        own.variance
    )


def test_an_appended_slow_host_is_stored_but_does_not_widen_the_spread() -> None:
    rng = np.random.default_rng(2)
    anchor = [(float(x), "a") for x in rng.normal(0, 0.003, 5)]
    usual = [(float(x), f"j{n}") for n, x in enumerate(rng.normal(0, 0.003, 9))]
    with_slow = baseline_of(anchor, [*usual, (0.1, "slow")])
    assert len(counted_appended(with_slow)) == 9
    assert baseline_spread(with_slow) == baseline_spread(baseline_of(anchor, usual))
