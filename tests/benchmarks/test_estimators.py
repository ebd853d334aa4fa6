"""The benchmark of estimators shares α as it says, and the fast path only ever adds REGRESSED."""

from __future__ import annotations

from math import log1p

import numpy as np
import pytest

from benchmarks.detection_worlds import WORLDS, Series
from benchmarks.estimators import FIGURES, Drawn, figures, sessions_drawn, with_fast
from benchmarks.rule_costs import Rule
from pytest_tokbudget.analysis import looks
from pytest_tokbudget.analysis.many_looks import REGRESSED, UNDECIDED

DELTA = -log1p(-0.03)
STEADY = WORLDS[0]


def drawn(seed: int, spread: float, slower: float) -> Drawn:
    rng = np.random.default_rng(seed)
    anchor, new = (STEADY.job(rng, 2_000, sessions, spread) for sessions in (5, 3))
    return Drawn(anchor, None, new + slower)


def test_figures_are_those_of_the_steps() -> None:
    steps_ms = np.random.default_rng(0).lognormal(2, 0.1, 101)
    found = dict(zip(FIGURES, np.exp(figures(steps_ms)), strict=True))
    assert found["mean"] == pytest.approx(steps_ms.mean())
    assert found["p50"] == pytest.approx(np.sort(steps_ms)[50])
    assert found["p10"] == pytest.approx(np.sort(steps_ms)[10])


def test_the_figures_of_a_drawn_session_are_of_the_same_steps() -> None:
    series = [Series(at, 0.0, np.full(40, 10.0 * (at + 1))) for at in range(3)]
    x = sessions_drawn(np.random.default_rng(0), series, (20, 4))
    assert np.ptp(x, axis=0).max() < 1e-12
    assert set(np.round(np.exp(x[0]).ravel())) == {10.0, 20.0, 30.0}


def test_a_quieter_fast_path_makes_regressed_of_open_runs_and_of_no_others() -> None:
    mean, fast = drawn(1, 0.015, 2 * DELTA), drawn(2, 0.001, 2 * DELTA)
    alone, half = mean.outcomes(DELTA, 1.0), mean.outcomes(DELTA, 0.5)
    both = with_fast(mean, fast, DELTA, 0.5)
    slower = mean.new.mean(axis=1) - mean.anchor.mean(axis=1) > DELTA
    assert 0 < (half == REGRESSED).mean() < (alone == REGRESSED).mean() < 0.5
    assert np.array_equal(both == REGRESSED, (alone == REGRESSED) | ((alone == UNDECIDED) & slower))
    assert np.array_equal(both[alone > UNDECIDED], alone[alone > UNDECIDED])


def test_a_fast_path_that_did_not_move_costs_what_the_mean_gave_it() -> None:
    mean, fast = drawn(1, 0.015, 2 * DELTA), drawn(2, 0.001, 0.0)
    found = with_fast(mean, fast, DELTA, 0.5)
    assert np.array_equal(found == REGRESSED, mean.outcomes(DELTA, 0.5) == REGRESSED)


def test_another_rule_is_tried_and_taken_back() -> None:
    unchanged = drawn(1, 0.01, 0.0)
    before = unchanged.outcomes(DELTA, 1.0)
    with Rule(first=4.0, last=0.001).applied():
        assert looks.LAST_LOOK_ALPHA == 0.001
        wider = unchanged.outcomes(DELTA, 1.0)
    assert (wider == UNDECIDED).mean() > (before == UNDECIDED).mean()
    assert np.array_equal(unchanged.outcomes(DELTA, 1.0), before)
