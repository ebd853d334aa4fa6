"""The rule of two ends: its formula, its limits, and how often it errs."""

from __future__ import annotations

from math import log1p, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from pytest_tokbudget.analysis.looks import (
    EARLIER_LOOKS_ALPHA,
    LAST_LOOK_ALPHA,
    Anchor,
    half_width,
    look,
    look_level,
    sessions_needed,
)
from pytest_tokbudget.analysis.spread import SMALLEST_SPREAD
from pytest_tokbudget.records.baseline import Spread
from pytest_tokbudget.records.verdict import Outcome

DELTA = -log1p(-0.03)


def anchor_with(spread: float, degrees: float = 4.0, between: float = 2.0) -> Anchor:
    return Anchor(0.0, 5, Spread(variance=spread**2, degrees=degrees), between)


@given(st.floats(0.003, 0.1), st.integers(2, 30), st.integers(1, 12), st.sampled_from((1.0, 2.0)))
def test_half_width_is_the_formula(s: float, degrees: int, sessions: int, between: float) -> None:
    anchor = anchor_with(s, degrees, between)
    t = reference.t.ppf(0.995, degrees)
    expected = t * s * sqrt(1 / 5 + 1 / sessions + between)
    assert half_width(anchor, anchor.spread, sessions) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("most", [1, 2, 3, 12])
def test_all_looks_together_spend_less_than_one_percent(most: int) -> None:
    spent = sum(1 - look_level(done, most) for done in range(1, most + 1))
    assert spent <= LAST_LOOK_ALPHA + EARLIER_LOOKS_ALPHA + 1e-12 < 0.01
    assert 1 - look_level(most, most) == pytest.approx(LAST_LOOK_ALPHA)


def test_pass_ends_exactly_where_twice_the_tolerance_begins() -> None:
    anchor = anchor_with(0.008, degrees=30)
    h = half_width(anchor, anchor.spread, 1, look_level(1, 1))
    limit = 2 * DELTA - h
    assert 0 < limit < DELTA
    assert look(anchor, [limit - 1e-9], DELTA, most=1).outcome is Outcome.PASS
    assert look(anchor, [limit + 1e-9], DELTA, most=1).outcome is Outcome.INCONCLUSIVE


def test_pass_never_exceeds_the_tolerance_itself() -> None:
    anchor = anchor_with(0.0001)
    assert look(anchor, [DELTA - 1e-9], DELTA, most=1).outcome is Outcome.PASS
    assert look(anchor, [DELTA + 1e-9], DELTA, most=1).outcome is Outcome.INCONCLUSIVE


def test_every_session_alone_must_be_slow() -> None:
    anchor = anchor_with(0.01, degrees=60, between=1.0)
    all_slow, one_usual = [0.08, 0.08, 0.08], [0.11, 0.11, 0.02]
    assert np.mean(all_slow) == pytest.approx(np.mean(one_usual))
    assert look(anchor, all_slow, DELTA, most=3).outcome is Outcome.REGRESSED
    assert look(anchor, one_usual, DELTA, most=3).outcome is Outcome.INCONCLUSIVE


def test_spread_floor_keeps_lucky_agreement_from_deciding() -> None:
    anchor = anchor_with(1e-6)
    h = look(anchor, [0.0], 0.004, most=1).half_width
    t = reference.t.ppf(0.995, 4)
    assert h == pytest.approx(t * SMALLEST_SPREAD * sqrt(1 / 5 + 1 + 2))
    assert look(anchor, [0.0], 0.004, most=1).outcome is Outcome.INCONCLUSIVE


@given(
    st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=4, unique=True), st.floats(0.003, 0.03)
)
@settings(max_examples=60)
def test_detectable_is_where_red_begins(new: list[float], s: float) -> None:
    """Shifting the sessions to just beyond ``detectable`` turns them red, just below does not."""
    anchor = anchor_with(s, degrees=12)
    seen = look(anchor, new, DELTA, most=len(new))
    if len(seen.counted) < 2:
        return
    for margin, red in ((1e-9, True), (-1e-9, False)):
        shift = seen.detectable - seen.d + margin
        moved = look(anchor, [x + shift for x in new], DELTA, most=len(new))
        assert (moved.outcome is Outcome.REGRESSED) is red


@given(st.floats(0.004, 0.012), st.floats(-0.02, 0.05))
@settings(max_examples=60)
def test_sessions_needed_is_the_first_number_that_decides(s: float, d: float) -> None:
    anchor = anchor_with(s, degrees=14, between=1.0)
    seen = look(anchor, [d], DELTA, most=1)
    if seen.outcome is not Outcome.INCONCLUSIVE:
        return
    needed = sessions_needed(anchor, seen, DELTA, 12)
    for number in range(2, 13):
        # Sessions that lie exactly at d, of which the spread is what was known of one look.
        spread = Spread(variance=s**2, degrees=14.0 + number - 1)
        h = half_width(anchor, spread, number, 1 - LAST_LOOK_ALPHA)
        decided = d + h < 2 * DELTA if d <= DELTA else d > h
        if number == needed:
            assert decided
            return
        assert not decided or d > DELTA
    assert needed is None


@pytest.mark.parametrize("spread", [0.0013, 0.01, 0.03])
@pytest.mark.parametrize("slowdown", [0.0, 2.0])
def test_both_errors_stay_below_one_percent(spread: float, slowdown: float) -> None:
    """Brute force over the production functions; the bound is 1 % plus 3 binomial errors."""
    rng = np.random.default_rng(11)
    runs, wrong = 400, 0
    bad = {Outcome.PASS, Outcome.IMPROVED} if slowdown else {Outcome.REGRESSED}
    for _ in range(runs):
        moods = rng.normal(0, spread / sqrt(2), 2)
        old = moods[0] + rng.normal(0, spread / sqrt(2), 5)
        new = moods[1] + rng.normal(0, spread / sqrt(2), 3) + slowdown * DELTA
        known = Spread(variance=float(np.var(old, ddof=1)), degrees=4.0)
        anchor = Anchor(float(np.mean(old)), 5, known, 2.0)
        wrong += final(anchor, [float(x) for x in new]) in bad
    assert wrong / runs < 0.01 + 3 * sqrt(0.01 / runs)


def final(anchor: Anchor, new: list[float]) -> Outcome:
    """Look after each session until one look settles it."""
    seen = [look(anchor, new[:done], DELTA, most=len(new)) for done in range(1, len(new) + 1)]
    return next(one.outcome for one in seen if one.settled)


def test_at_most_one_session_is_left_out() -> None:
    anchor = anchor_with(0.003, degrees=20)
    new = [0.3, 0.0, 0.001]
    assert look(anchor, new, DELTA, most=3).set_aside == 0
    assert look(anchor, new, DELTA, most=4, lost=1).set_aside is None


def test_a_slow_down_of_all_sessions_sets_none_aside() -> None:
    anchor = anchor_with(0.003, degrees=20)
    assert look(anchor, [0.5, 0.501, 0.499], DELTA, most=3).set_aside is None
