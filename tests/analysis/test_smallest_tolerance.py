"""The smallest tolerance that holds: against earlier simulations, and its own meaning."""

from __future__ import annotations

from math import log1p

import numpy as np
import pytest

from pytest_tokbudget.analysis.smallest_tolerance import (
    interval_of_deviation,
    smallest_with_pairs,
    smallest_with_sessions,
)


def test_the_interval_holds_the_true_spread_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)

    found = [
        interval_of_deviation(float(np.std(0.02 * rng.standard_normal(5), ddof=1)), 4)
        for _ in range(4_000)
    ]

    held = np.mean([low <= 0.02 <= high for low, high in found])
    assert held == pytest.approx(0.95, abs=0.012)


def test_one_session_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        interval_of_deviation(1.0, 0)


def test_the_smallest_tolerances_are_those_of_earlier_simulations() -> None:
    found = [
        smallest_with_sessions(0.01, 1, settled=False),
        smallest_with_sessions(0.01, 3, settled=True),
        smallest_with_pairs(0.01),
    ]

    # As δ = -log(1 - tolerance), by 4,000 runs each.
    assert None not in found
    deltas = [-log1p(-one.tolerance) for one in found if one is not None]
    assert deltas == pytest.approx([0.061, 0.023, 0.011], rel=0.08)


def test_jobs_that_differ_cost_tolerance() -> None:
    alike = smallest_with_sessions(0.01, 3, settled=True)
    differing = smallest_with_sessions(0.01, 3, settled=True, between_jobs=4.0)

    assert alike is not None
    assert differing is not None
    assert differing.tolerance > alike.tolerance
    assert 1 <= alike.mean_used <= 3


def test_a_spread_that_no_gate_can_hold_has_no_tolerance() -> None:
    assert smallest_with_sessions(2.0, 1, settled=False) is None
