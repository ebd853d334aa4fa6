"""Slow sessions are told from slow code by Student's test, leaving the suspect out."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from pytest_tokbudget.analysis.outliers import SET_ASIDE_ALPHA, slow_excess, slow_outliers
from pytest_tokbudget.analysis.spread import SMALLEST_SPREAD
from pytest_tokbudget.records.baseline import Spread

SAMPLES = st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=12, unique=True)


def oracle_excess(x: list[float], index: int) -> float:
    others = np.delete(np.array(x), index)
    s = max(others.std(ddof=1), SMALLEST_SPREAD)
    t = (x[index] - others.mean()) / (s * sqrt(1 + 1 / len(others)))
    return float(t / reference.t.ppf(1 - SET_ASIDE_ALPHA, len(others) - 1))


@given(SAMPLES, st.integers(0, 2))
def test_excess_is_the_deleted_residual(x: list[float], index: int) -> None:
    assert slow_excess(x, index) == pytest.approx(oracle_excess(x, index), rel=1e-9, abs=1e-12)


def test_excess_equals_the_textbook_studentized_residual() -> None:
    """t* = e·√((n − p − 1)/(SSE(1 − h) − e²)), of the model with a mean alone (p = 1, h = 1/n)."""
    x = [0.0, 0.02, -0.02, 0.01, 0.12]
    n, mean = len(x), np.mean(x)
    e = x[4] - mean
    sse = float(np.sum((np.array(x) - mean) ** 2))
    t = e * sqrt((n - 2) / (sse * (1 - 1 / n) - e**2))
    critical = reference.t.ppf(1 - SET_ASIDE_ALPHA, n - 2)
    assert slow_excess(x, 4) == pytest.approx(t / critical, rel=1e-9)


def test_known_spread_makes_two_values_comparable() -> None:
    known = Spread(variance=0.01**2, degrees=10.0)
    limit = 0.01 * sqrt(2) * reference.t.ppf(0.999, 10)
    assert (
        slow_excess([0.0, limit * 0.999], 1, known) < 1 < slow_excess([0, limit * 1.001], 1, known)
    )
    assert slow_excess([0.0, 1.0], 1) == 0.0
    assert slow_excess([0.0], 0, known) == 0.0


def test_a_slow_session_is_named_a_fast_one_never() -> None:
    usual = [0.0, 0.001, -0.001, 0.002]
    assert slow_outliers([*usual[:2], 0.1, *usual[2:]]) == [2]
    assert slow_outliers([*usual, -0.1]) == []


def test_two_slow_sessions_cannot_hide_each_other_and_the_slowest_comes_first() -> None:
    assert slow_outliers([0.0, 0.30, 0.001, -0.001, 0.31, 0.002, -0.002]) == [4, 1]


@pytest.mark.parametrize("x", [[], [0.1], [0.0, 5.0]])
def test_too_few_to_tell(x: list[float]) -> None:
    assert slow_outliers(x) == []


def test_differences_below_the_smallest_spread_are_no_outliers() -> None:
    assert slow_outliers([0.0, 1e-6, -1e-6, 2e-6, 0.001]) == []


@given(SAMPLES, st.floats(-3, 3), st.integers(0, 1000))
@settings(max_examples=200)
def test_neither_order_nor_the_unit_of_the_rate_matters(
    x: list[float], shift: float, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(x))
    before = [x[index] for index in slow_outliers(x)]
    moved = [x[index] + shift for index in order]
    after = [moved[index] - shift for index in slow_outliers(moved)]
    assert after == pytest.approx(before, abs=1e-9)


@given(SAMPLES)
def test_what_is_named_is_slower_than_all_that_is_kept(x: list[float]) -> None:
    found = slow_outliers(x)
    kept = [value for index, value in enumerate(x) if index not in found]
    assert len(kept) > len(x) / 2
    assert [x[index] for index in found] == sorted((x[index] for index in found), reverse=True)
    if found:
        assert min(x[index] for index in found) > max(kept)


def test_unchanged_sessions_are_rarely_named() -> None:
    """At most n·α with n = 5 sessions, up to four binomial standard errors."""
    rng = np.random.default_rng(7)
    runs = 3000
    named = sum(bool(slow_outliers(list(rng.normal(0, 0.02, 5)))) for _ in range(runs))
    expected = 5 * SET_ASIDE_ALPHA
    assert named / runs < expected + 4 * sqrt(expected / runs)
