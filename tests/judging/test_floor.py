"""Floors are judged by the new sessions alone."""

from __future__ import annotations

import pytest

from pytest_tokbudget.judging import judge
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.verdict import Outcome, Verdict

from .cases import baseline, budget, session

QUIET = (1500.0, 1501.0, 1499.0, 1502.0, 1498.0)


def floored(*rates: float, most: int = 3) -> Verdict:
    runs = [session(tok_s) for tok_s in rates]
    return judge(runs, None, budget(None, 1450.0), max_sessions=most)


def test_at_or_above_the_floor_needs_no_baseline() -> None:
    verdict = floored(1465.0)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.PASS, False)
    assert verdict.sentences == ["1,465 tok/s, 1 % above the floor of 1,450 tok/s."]
    assert floored(1450.0).outcome is Outcome.PASS
    assert (verdict.change_pct, verdict.ci_pct, verdict.mde_pct) == (None, None, None)
    assert verdict.floor_tok_s == 1450.0


def test_below_it_in_each_of_two_is_regressed() -> None:
    first, second = floored(1400.0), floored(1400.0, 1410.0)
    assert first.wants_more
    assert (second.outcome, second.wants_more) == (Outcome.REGRESSED, False)
    assert second.sentences[0].endswith("in each of 2 sessions.")


@pytest.mark.parametrize(("last", "outcome"), [(1440.0, Outcome.REGRESSED), (1500.0, Outcome.PASS)])
def test_mixed_sessions_go_up_to_max_and_their_mean_decides(last: float, outcome: Outcome) -> None:
    assert floored(1400.0, 1460.0).wants_more
    verdict = floored(1400.0, 1460.0, last)
    assert (verdict.outcome, verdict.wants_more) == (outcome, False)
    assert "on the mean of 3 sessions" in verdict.sentences[0]


def test_the_only_session_decides_where_no_other_is_allowed() -> None:
    assert floored(1449.0, most=1).outcome is Outcome.REGRESSED


def test_a_floor_fails_what_the_baseline_would_pass() -> None:
    runs = [session(1495.0), session(1496.0)]
    verdict = judge(runs, baseline(QUIET), budget(0.03, 1550.0), max_sessions=3)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.REGRESSED, False)
    assert "below the floor of 1,550 tok/s" in verdict.sentences[0]
    assert "slower than the baseline" in verdict.sentences[1]


def test_a_floor_held_does_not_hide_a_regression() -> None:
    runs = [session(1300.0), session(1301.0), session(1299.0)]
    verdict = judge(runs, baseline(QUIET), budget(0.03, 1000.0), max_sessions=3)
    assert verdict.outcome is Outcome.REGRESSED
    assert "slower than the baseline" in verdict.sentences[0]


def test_a_floor_is_judged_although_there_is_no_baseline() -> None:
    missing = Unavailable("none here")
    runs = [session(1300.0), session(1301.0)]
    broken = judge(runs, missing, budget(0.03, 1450.0), max_sessions=3)
    held = judge(runs, missing, budget(0.03, 1000.0), max_sessions=3)
    assert (broken.outcome, held.outcome) == (Outcome.REGRESSED, Outcome.NO_BASELINE)


def test_with_a_session_left_out_one_alone_does_not_hold_the_floor() -> None:
    runs = [session(1500.0, unsteady="drift"), session(1500.0), session(1500.0)]
    two = judge(runs[:2], None, budget(None, 1450.0), max_sessions=3)
    three = judge(runs, None, budget(None, 1450.0), max_sessions=3)
    assert (two.outcome, two.wants_more) == (Outcome.INCONCLUSIVE, True)
    assert three.outcome is Outcome.PASS
