"""Ceilings on figures: judged by the new sessions alone, as a floor is."""

from __future__ import annotations

import pytest

from pytest_tokbudget.errors import MeasureError, UsageError
from pytest_tokbudget.judging import judge
from pytest_tokbudget.records.marks import MarkSeries
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome, Verdict

from .cases import baseline, budget, session


def run(step_ms: float, unsteady: str = "") -> RunRecord:
    times = [round(step * step_ms * 1e6) for step in range(1, 11)]
    marks = MarkSeries(
        worker="step",
        counts=True,
        times_ns=times,
        tokens={"real": [100] * 10},
        window=(-1, 9),
        window_ns=(0, times[-1]),
    )
    return session(1000, marks=[marks], unsteady=unsteady)


def verdict(*step_ms: float, most: int = 3, ceiling: float = 40.0) -> Verdict:
    wanted = budget(None, ceilings={"step_ms.p95": ceiling})
    return judge([run(ms) for ms in step_ms], None, wanted, max_sessions=most)


@pytest.mark.parametrize(
    ("step_ms", "outcome", "more"),
    [
        ((30.0,), "PASS", False),
        ((40.0,), "PASS", False),
        ((50.0,), "REGRESSED", True),
        ((50.0, 41.0), "REGRESSED", False),
        ((50.0, 39.0), "REGRESSED", True),
        ((50.0, 20.0), "PASS", True),
        ((50.0, 30.0, 30.0), "PASS", False),
        ((50.0, 39.0, 39.0), "REGRESSED", False),
    ],
)
def test_a_ceiling_is_judged_as_a_floor_is(
    step_ms: tuple[float, ...], outcome: str, more: bool
) -> None:
    found = verdict(*step_ms)
    assert (found.outcome, found.wants_more) == (Outcome(outcome), more)


def test_the_sentence_names_figure_value_and_ceiling() -> None:
    assert verdict(30.0).sentences == ["step_ms.p95 is 30 ms, within its ceiling of 40 ms."]
    assert verdict(50.0, 52.0).sentences == [
        "step_ms.p95 is 51 ms, above its ceiling of 40 ms, in each of 2 sessions."
    ]


def test_an_unavailable_figure_fails_and_says_why() -> None:
    wanted = budget(ceilings={"idle_pct": 10.0})
    with pytest.raises(MeasureError, match=r"ceiling on idle_pct.*found none: no evidence pass"):
        judge([run(30)], baseline([1000] * 5), wanted, max_sessions=1)


def test_an_unknown_figure_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="known are"):
        judge([run(30)], None, budget(None, ceilings={"nope": 1.0}), max_sessions=1)


def test_a_ceiling_fails_beside_a_rate_that_passes() -> None:
    wanted = budget(ceilings={"step_ms.p50": 40.0, "step_ms.max": 100.0})
    found = judge([run(50), run(50)], baseline([1000] * 5), wanted, max_sessions=3)
    assert found.outcome is Outcome.REGRESSED
    assert found.sentences[0].startswith("step_ms.p50 is 50 ms, above")
    assert not found.wants_more
    assert judge([run(30)], baseline([1000] * 5), wanted, max_sessions=3).outcome is Outcome.PASS


def test_with_a_session_left_out_one_alone_passes_no_ceiling() -> None:
    wanted = budget(None, ceilings={"step_ms.p95": 40.0})
    found = judge([run(50, unsteady="x"), run(30)], None, wanted, max_sessions=3)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.wants_more
