"""The rule of pairs against a slow oracle, and its edges."""

from __future__ import annotations

import statistics
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_tokbudget.analysis.pairs import (
    LOOK_ALPHA,
    MOST_PAIRS,
    look_at_pairs,
    pair_half_width,
    pairs_needed,
)
from pytest_tokbudget.records.verdict import Outcome

DIFFERENCES = st.lists(st.floats(-0.2, 0.2), min_size=2, max_size=MOST_PAIRS)


@given(DIFFERENCES)
def test_half_width_is_students(differences: list[float]) -> None:
    s = max(statistics.stdev(differences), 0.0025)
    n = len(differences)

    expected = stats.t.ppf(1 - LOOK_ALPHA, n - 1) * s / sqrt(n)

    assert pair_half_width(differences) == pytest.approx(expected)


@given(DIFFERENCES, st.floats(0.005, 0.1))
def test_a_decision_excludes_the_other_end(differences: list[float], delta: float) -> None:
    look = look_at_pairs(differences, delta)
    d, h = statistics.fmean(differences), pair_half_width(differences)

    if look.outcome in (Outcome.PASS, Outcome.IMPROVED):
        assert d + h < 2 * delta
    if look.outcome is Outcome.REGRESSED:
        assert d - h > 0
        assert d > delta
        assert look.detectable is not None
        assert d >= look.detectable - 1e-12


@given(DIFFERENCES, st.floats(0.005, 0.1), st.floats(0, 0.2))
def test_slower_code_is_never_judged_better(
    differences: list[float], delta: float, more: float
) -> None:
    order = [Outcome.IMPROVED, Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.REGRESSED]
    before = look_at_pairs(differences, delta).outcome
    after = look_at_pairs([one + more for one in differences], delta).outcome

    assert order.index(after) >= order.index(before)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_than_four_pairs_decide_nothing(count: int) -> None:
    assert look_at_pairs([0.3] * count, 0.03).outcome is Outcome.INCONCLUSIVE


def test_pairs_needed_is_where_the_rule_decides() -> None:
    differences = [0.03, -0.03, 0.03, -0.03]
    needed = pairs_needed(differences, 0.03, MOST_PAIRS)

    assert look_at_pairs(differences, 0.03).outcome is Outcome.INCONCLUSIVE
    assert needed is not None
    assert 4 < needed <= MOST_PAIRS
    assert pairs_needed([0.5, -0.5, 0.5, -0.5], 0.03, MOST_PAIRS) is None
