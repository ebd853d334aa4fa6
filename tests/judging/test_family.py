"""The sentence on all tests of a run."""

from __future__ import annotations

import pytest

from pytest_tokbudget.judging import family
from pytest_tokbudget.records.verdict import Outcome, Verdict


def verdict(outcome: Outcome = Outcome.PASS, *, compared: bool = True) -> Verdict:
    return Verdict(outcome=outcome, sentences=[], ci_pct=(-1.0, 1.0) if compared else None)


@pytest.mark.parametrize(
    ("tests", "text"),
    [
        (2, "2 tests judged; under 0.1 false alarms to expect at most if nothing changed."),
        (50, "50 tests judged; 0.4 false alarms to expect at most if nothing changed."),
    ],
)
def test_false_alarms_to_expect(tests: int, text: str) -> None:
    assert family([verdict()] * tests) == text


def test_only_tests_compared_with_a_baseline_count() -> None:
    others = [verdict(Outcome.NO_BASELINE), verdict(Outcome.UNFIT), verdict(compared=False)]
    assert family([*others, verdict()]) is None
    both = family([*others, verdict(Outcome.REGRESSED), verdict(Outcome.INCONCLUSIVE)])
    assert both is not None
    assert both.startswith("2 tests judged")
