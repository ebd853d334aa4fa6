"""What cannot be judged raises; it never passes."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tokbudget.errors import (
    MeasureError,
    MismatchError,
    NothingMeasuredError,
    UnreadableError,
    UsageError,
)
from pytest_tokbudget.judging import judge
from pytest_tokbudget.judging.ruling import Ruling, combined
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.verdict import Outcome
from pytest_tokbudget.records.workload import Workload

from .cases import baseline, budget, session, stored, timing, workload

OLD = (1000.0, 1001.0, 999.0)


def judge_one(run: Any, against: Baseline | None = None) -> None:
    judge([run], against or baseline(OLD), budget(), max_sessions=3)


def test_no_session() -> None:
    with pytest.raises(NothingMeasuredError, match="found 0"):
        judge([], baseline(OLD), budget(), max_sessions=3)


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ([], "found none"),
        ([timing(1000.0, steps=0)], "found 0 steps"),
        ([timing(1000.0, real=0)], "counted no 'real' tokens"),
        ([timing(1000.0, slots=4096)], "tokens seen: 4,096 slots"),
        ([timing(0.0)], "expected tok/s above 0"),
        ([timing(float("nan"))], "expected tok/s above 0"),
        ([timing(float("inf"))], "expected tok/s above 0"),
    ],
)
def test_a_session_without_steps_tokens_or_rate(passes: list[Any], message: str) -> None:
    with pytest.raises(NothingMeasuredError, match=message):
        judge_one(session(1000.0, passes=passes))


def test_the_second_session_is_looked_at_too() -> None:
    runs = [session(1000.0), session(1000.0, passes=[timing(1000.0, real=0)])]
    with pytest.raises(NothingMeasuredError, match="session 2"):
        judge(runs, baseline(OLD), budget(), max_sessions=3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"workload": workload(length=2)}, "length absent → 2"),
        ({"budget": budget(token_kind="slots")}, "token_kind real → slots"),
        (
            {"workload": Workload(path="t.py", qualname="other", nodeid="t.py::other")},
            "measured another test",
        ),
    ],
)
def test_sessions_that_disagree(fields: dict[str, Any], message: str) -> None:
    runs = [session(1000.0), session(1000.0, **fields)]
    with pytest.raises(MeasureError, match=message):
        judge(runs, baseline(OLD), budget(), max_sessions=3)


@pytest.mark.parametrize(
    ("tolerance", "floor", "message"),
    [
        (None, None, "judges nothing without a floor"),
        (0.0, None, "between 0 and 1"),
        (1.0, None, "between 0 and 1"),
        (float("nan"), None, "between 0 and 1"),
        (None, 0.0, "positive rate"),
        (None, float("nan"), "positive rate"),
    ],
)
def test_a_budget_that_demands_nothing(
    tolerance: float | None, floor: float | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        judge([session(1000.0)], baseline(OLD), budget(tolerance, floor), max_sessions=3)


def test_a_baseline_of_another_test() -> None:
    other = Workload(path="t.py", qualname="other", nodeid="t.py::other")
    with pytest.raises(MismatchError, match="belongs to another test"):
        judge_one(session(1000.0), baseline(OLD, workload=other))


@pytest.mark.parametrize("tok_s", [0.0, -5.0, float("nan")])
def test_a_baseline_with_an_impossible_rate(tok_s: float) -> None:
    with pytest.raises(UnreadableError, match="anchor session 3"):
        judge_one(session(1000.0), baseline((*OLD[:2], tok_s)))
    with pytest.raises(UnreadableError, match="appended session 1"):
        judge_one(session(1000.0), baseline(OLD, [stored(tok_s)]))


def test_nothing_that_judged_is_no_pass() -> None:
    with pytest.raises(ValueError, match="nothing judged"):
        combined([])


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (("PASS", "PASS"), "PASS"),
        (("IMPROVED", "PASS"), "IMPROVED"),
        (("IMPROVED", "REGRESSED"), "REGRESSED"),
        (("INCONCLUSIVE", "PASS"), "INCONCLUSIVE"),
        (("INCONCLUSIVE", "REGRESSED"), "REGRESSED"),
        (("NO_BASELINE", "REGRESSED"), "REGRESSED"),
        (("UNFIT", "REGRESSED"), "UNFIT"),
    ],
)
def test_the_heavier_ruling_wins(outcomes: tuple[str, ...], expected: str) -> None:
    rulings = [Ruling(Outcome(one), (one,)) for one in outcomes]
    for order in (rulings, rulings[::-1]):
        whole = combined(order)
        assert whole.outcome is Outcome(expected)
        assert whole.sentences[0] == expected


def test_more_is_wanted_until_a_ruling_has_failed_for_good() -> None:
    doubt = Ruling(Outcome.INCONCLUSIVE, ("?",), wants_more=True)
    assert combined([doubt, Ruling(Outcome.PASS, ())]).wants_more
    assert not combined([doubt, Ruling(Outcome.REGRESSED, ())]).wants_more
    assert combined([doubt, Ruling(Outcome.REGRESSED, (), wants_more=True)]).wants_more
