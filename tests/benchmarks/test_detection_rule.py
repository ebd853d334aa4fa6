"""The vectorized rule of ``benchmarks/detection.py`` is the production rule."""

from __future__ import annotations

from math import log1p

import numpy as np
import pytest

from benchmarks.detection_worlds import WORLDS, World, refreshed
from pytest_tokbudget.analysis.looks import Anchor, anchor_of, look
from pytest_tokbudget.analysis.many_looks import (
    IMPROVED,
    PASSED,
    REGRESSED,
    UNDECIDED,
    Knowledge,
    decide,
    learn,
    slow,
)
from pytest_tokbudget.analysis.outliers import slow_outliers
from pytest_tokbudget.records.baseline import Baseline, StoredSession
from pytest_tokbudget.records.machine import MachineClass, Software
from pytest_tokbudget.records.verdict import Outcome
from pytest_tokbudget.records.workload import Workload

CODES = {
    Outcome.INCONCLUSIVE: UNDECIDED,
    Outcome.PASS: PASSED,
    Outcome.IMPROVED: IMPROVED,
    Outcome.REGRESSED: REGRESSED,
}
RUNS = 60


def baseline_of(anchor: list[float], appended: list[float]) -> Baseline:
    def stored(x: float, job: str) -> StoredSession:
        return StoredSession(
            tok_s=float(np.exp(-x)),
            steps=1,
            seconds=1.0,
            warmup_steps=0,
            warmup_seconds=0.0,
            job=job,
            commit=None,
            host_hash="h",
            unix_s=0,
            software=Software(python="3", tokbudget="0"),
        )

    return Baseline(
        workload=Workload(path="t.py", qualname="t", nodeid="t.py::t"),
        machine_class=MachineClass(slug="m", fields={}),
        token_kind="real",
        anchor=[stored(x, "anchor") for x in anchor],
        appended=[stored(x, f"job {index}") for index, x in enumerate(appended)],
        log=[],
    )


def one_by_one(anchor: Anchor, new: list[float], delta: float, share: float) -> tuple[int, int]:
    """What the controller does: look, and measure another session until it is settled."""
    for done in range(1, len(new) + 1):
        seen = look(anchor, new[:done], delta, most=len(new), share=share)
        if seen.settled:
            return CODES[seen.outcome], done
    raise AssertionError("the last look settles")


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
@pytest.mark.parametrize("appended", [0, 4, 9])
@pytest.mark.parametrize(("most", "share"), [(1, 1.0), (3, 1.0), (3, 0.5)])
def test_equal_to_the_production_functions(
    world: World, appended: int, most: int, share: float
) -> None:
    rng = np.random.default_rng(appended + most)
    delta = -log1p(-0.03)
    spread = 0.012
    old = world.job(rng, RUNS, 5, spread)
    since = np.concatenate([world.job(rng, RUNS, 1, spread) for _ in range(appended)] or [old], 1)
    new = world.job(rng, RUNS, most, spread) + rng.choice([-3, 0, 1, 2, 4], (RUNS, 1)) * delta
    known = learn(old, since if appended else None)
    outcome, used = decide(known, new, delta, share)
    for run in range(RUNS):
        stored = baseline_of(list(old[run]), list(since[run]) if appended else [])
        anchor = anchor_of(stored)
        assert known.mean[run] == pytest.approx(anchor.mean, abs=1e-12)
        assert known.variance[run] == pytest.approx(anchor.spread.variance, rel=1e-9)
        assert (known.degrees[run], known.between[run]) == (anchor.spread.degrees, anchor.between)
        expected = one_by_one(anchor, [float(x) for x in new[run]], delta, share)
        assert (int(outcome[run]), int(used[run])) == expected


def test_all_outcomes_are_reached() -> None:
    """Else the comparison above would prove little."""
    rng = np.random.default_rng(3)
    delta = -log1p(-0.03)
    known = learn(WORLDS[0].job(rng, 500, 5, 0.012))
    new = WORLDS[0].job(rng, 500, 3, 0.012) + rng.choice([-3, 0, 1, 2, 4], (500, 1)) * delta
    outcome, used = decide(known, new, delta)
    assert set(outcome) == {UNDECIDED, PASSED, IMPROVED, REGRESSED}
    assert set(used) == {1, 2, 3}
    assert isinstance(known, Knowledge)


@pytest.mark.parametrize("sessions", [3, 5, 6, 10])
def test_slow_names_what_production_names(sessions: int) -> None:
    rng = np.random.default_rng(sessions)
    x = rng.normal(0, 0.01, (300, sessions)) + 0.3 * (rng.random((300, sessions)) < 0.2)
    named = slow(x)
    for run in range(300):
        expected = set(slow_outliers([float(value) for value in x[run]]))
        assert set(np.flatnonzero(named[run])) == expected


def test_a_refresh_replaces_at_most_two() -> None:
    usual = [0.0, 0.001, -0.001, 0.002, -0.002]
    drawn = np.array([[*usual, 0.5, 0.5], [0.5, *usual, 0.5], [0.5, *usual[:4], 0.5, 0.5]])
    anchor, stands = refreshed(drawn, 5)
    assert list(stands) == [True, True, False]
    assert sorted(anchor[1]) == sorted(usual)
