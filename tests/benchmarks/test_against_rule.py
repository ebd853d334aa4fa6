"""The A/B benchmark's vectorized rule against the production one, and the errors it reports."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.against import WORLDS, simulated
from pytest_tokbudget.analysis.many_pairs import PASSED, REGRESSED, UNDECIDED, decide
from pytest_tokbudget.analysis.pairs import FEWEST_PAIRS, MOST_PAIRS, look_at_pairs
from pytest_tokbudget.records.verdict import Outcome

CODES = {Outcome.PASS: PASSED, Outcome.IMPROVED: PASSED, Outcome.REGRESSED: REGRESSED}


def decided(differences: list[float], delta: float) -> tuple[int, int]:
    """What the production rule says, a look after every pair."""
    for pairs in range(FEWEST_PAIRS, MOST_PAIRS + 1):
        outcome = look_at_pairs(differences[:pairs], delta).outcome
        if outcome is not Outcome.INCONCLUSIVE:
            return CODES[outcome], pairs
    return UNDECIDED, MOST_PAIRS


@pytest.mark.parametrize("world", WORLDS)
def test_the_twin_decides_as_the_rule_does(world: str) -> None:
    rng = np.random.default_rng(3)
    for delta in (0.01, 0.03):
        drawn = WORLDS[world](rng, 30) + rng.uniform(-0.05, 0.08, (30, 1))
        outcome, used = decide(drawn, delta)
        expected = [decided(row.tolist(), delta) for row in drawn]
        assert list(zip(outcome.tolist(), used.tolist())) == expected


@pytest.mark.parametrize("tolerance", [0.02, 0.03, 0.05])
@pytest.mark.parametrize("world", WORLDS)
def test_both_errors_stay_below_one_percent(world: str, tolerance: float) -> None:
    row = simulated(np.random.default_rng(4), world, tolerance, 20_000)

    # three standard errors of a share of 1 % over 20,000 runs are 0.2 %
    assert row.false_alarms <= 1.2
    assert row.missed_2 <= 1.2


def test_two_percent_between_processes_is_decided_at_three() -> None:
    row = simulated(np.random.default_rng(4), "process 2 %", 0.03, 20_000)

    assert max(row.false_alarms, row.missed_2) < 0.5
    assert max(row.undecided_0, row.undecided_2) < 1
    assert row.pairs < 7
