"""Jobs, change points and the creep of an anchor, against slow and obvious oracles."""

from __future__ import annotations

import itertools
import sys
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis.trend import (
    FEWEST_JOBS,
    MOST_JOBS,
    PENALTY,
    anchor_moves,
    change_points,
    job_points,
    trend_of,
)
from pytest_tokbudget.errors import MissingLibraryError
from pytest_tokbudget.records.baseline import RefreshEntry, StoredSession
from pytest_tokbudget.records.history import SeenSession
from pytest_tokbudget.records.machine import Software


def seen(tok_s: float, job: str, unix_s: int, **fields: object) -> SeenSession:
    source = str(fields.pop("source", "run"))
    stored: dict[str, object] = {
        "steps": 9,
        "seconds": 1.0,
        "warmup_steps": 1,
        "warmup_seconds": 0.1,
        "commit": "c0ffee",
        "host_hash": "h",
        "software": Software(python="3.11", tokbudget="0"),
    }
    session = StoredSession(tok_s=tok_s, job=job, unix_s=unix_s, **(stored | fields))  # type: ignore[arg-type]
    return SeenSession(session=session, source=source)


def entry(new: float, old: float | None) -> RefreshEntry:
    return RefreshEntry(date="2026-01-02", commit=None, reason="r", old_tok_s=old, new_tok_s=new)


def cheapest(x: np.ndarray, noise: float) -> tuple[float, list[int]]:
    """Cost and places of the best piecewise constant fit, by trying every one."""

    def cost(part: np.ndarray) -> float:
        return float(np.abs(part - np.median(part)).sum()) / noise

    best = (float("inf"), [0])
    for number in range(len(x) // FEWEST_JOBS):
        for places in itertools.combinations(range(1, len(x)), number):
            ends = [0, *places, len(x)]
            if min(b - a for a, b in itertools.pairwise(ends)) < FEWEST_JOBS:
                continue
            total = sum(cost(x[a:b]) for a, b in itertools.pairwise(ends))
            total += number * PENALTY * log(len(x))
            best = min(best, (total, list(places)))
    return best


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(6, 11), st.sampled_from([0.0, 0.03, 0.1]))
def test_no_other_places_fit_better(seed: int, jobs: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    x = 0.01 * rng.standard_normal(jobs) + step * (np.arange(jobs) >= rng.integers(1, jobs))
    differences = np.abs(np.diff(x))
    kept = np.sort(differences**2)[: max(1, int(0.9 * len(differences)))]
    noise = max(np.median(differences) / 0.6745 / 2**0.5, (kept.mean() / 2) ** 0.5, 0.0025)

    _, places = cheapest(x, float(noise))

    assert change_points(list(x)) == places


@pytest.mark.parametrize("jobs", [6, 10, 20])
@pytest.mark.parametrize("heavy", [False, True])
def test_noise_rarely_looks_like_a_change(jobs: int, heavy: bool) -> None:
    rng = np.random.default_rng(jobs)
    runs = 100 if jobs < 20 else 40

    def noise() -> np.ndarray:
        drawn = rng.standard_t(3, jobs) / 3**0.5 if heavy else rng.standard_normal(jobs)
        return np.asarray(0.02 * drawn)

    found = sum(bool(change_points(list(noise()))) for _ in range(runs))

    # 2.7 % at most were measured over many more runs; 7 of 100 have a chance of 1 in 50 then.
    assert found <= 0.07 * runs


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(5, 20), st.integers(5, 20), st.floats(0.1, 0.5))
def test_a_clear_step_is_found_where_it_is(seed: int, before: int, after: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    # Within the smallest spread that is believed, so that chance adds no change of its own.
    x = [*rng.uniform(-0.002, 0.002, before), *(step + rng.uniform(-0.002, 0.002, after))]

    assert change_points([float(one) for one in x]) == [before]


def test_one_or_two_slow_hosts_are_no_change() -> None:
    x = [0.0, 0.001, 0.3, -0.001, 0.002, 0.0, 0.25, 0.28, 0.001, -0.002, 0.001, 0.0]

    assert change_points(x) == []


def test_too_few_jobs_tell_nothing_and_too_many_only_at_their_end() -> None:
    assert change_points([0.0, 0.0, 1.0, 1.0, 1.0]) == []
    old = [9.0] * 5 + [5.0] * 5
    assert change_points([*old, *[0.0] * (MOST_JOBS - 6), *[1.0] * 6]) == [len(old) + MOST_JOBS - 6]


def test_sessions_of_a_job_are_one_point() -> None:
    sessions = [
        seen(100.0, "b", 50, source="appended"),
        seen(100.0, "a", 10, source="run"),
        seen(400.0, "a", 20, source="anchor"),
        seen(7.0, "", 30),
        seen(7.0, "", 40),
    ]

    points = job_points(sessions)

    assert [(one.when.timestamp(), one.sessions, one.source) for one in points] == [
        (10, 2, "anchor"),
        (30, 1, "run"),
        (40, 1, "run"),
        (50, 1, "appended"),
    ]
    assert points[0].tok_s == pytest.approx(200.0)


def test_a_change_is_told_with_what_else_is_new() -> None:
    software = Software(python="3.11", tokbudget="0", torch="2.14")
    older = Software(python="3.11", tokbudget="0", torch="2.13")
    jobs = [seen(1000.0 + one, f"a{one}", one, software=older) for one in range(5)]
    jobs += [
        seen(900.0 + one, f"b{one}", 9 + one, software=software, host_hash="other")
        for one in range(4)
    ]

    trend = trend_of(jobs, [])

    (change,) = trend.changes
    assert change.at == 5
    assert change.also == ("another host", "torch 2.13 → 2.14")
    assert change.change_pct == pytest.approx(100 * (change.after_tok_s / change.before_tok_s - 1))
    assert change.ci_pct[0] < change.change_pct < change.ci_pct[1] < -9


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=8))
def test_creep_is_the_product_of_its_steps(factors: list[float]) -> None:
    rates = [1000.0]
    log_ = [entry(1000.0, None)]
    for factor in factors:
        log_.append(entry(rates[-1] * factor, rates[-1]))
        rates.append(rates[-1] * factor)

    moves = anchor_moves(log_)

    assert moves[0].step_pct is None
    assert moves[0].since_first_pct is None
    for index, factor in enumerate(factors, 1):
        assert moves[index].step_pct == pytest.approx(100 * (factor - 1), abs=1e-9)
        total = 100 * (float(np.prod(factors[:index])) - 1)
        assert moves[index].since_first_pct == pytest.approx(total, abs=1e-6)
    assert trend_of([], log_).creep_pct == moves[-1].since_first_pct


def test_another_workload_is_a_new_first_anchor() -> None:
    log_ = [entry(100.0, None), entry(110.0, 100.0), entry(50.0, None), entry(45.0, 50.0)]

    moves = anchor_moves(log_)

    assert [one.since_first_pct and round(one.since_first_pct, 6) for one in moves] == [
        None,
        10.0,
        None,
        -10.0,
    ]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)

    with pytest.raises(MissingLibraryError, match=r"pip install 'pytest-tokbudget\[history\]'"):
        change_points([0.0] * 9)
