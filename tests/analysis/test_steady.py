"""Found steady state: on recorded H200 series, on synthetic ones, against a slow oracle."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis import steady
from pytest_tokbudget.analysis.steady import (
    ChangePoint,
    change_point,
    find_steady,
    material_change,
    material_to_mean,
    queued_ahead,
)

DATA = Path(__file__).parents[1] / "data" / "h200_steps" / "step_ms.json"
RECORDED: dict[str, list[float]] = json.loads(DATA.read_text())

Floats = npt.NDArray[np.float64]


def restless(steps: int, seed: int, noise: float = 0.02, lag: float = 0.6) -> Floats:
    """Step times of 10 ms whose neighbours correlate by ``lag``."""
    rng = np.random.default_rng(seed)
    wander = rng.normal(scale=noise, size=steps)
    for i in range(1, steps):
        wander[i] += lag * wander[i - 1]
    return np.asarray(10.0 * (1.0 + wander))


@given(
    filling=st.integers(0, 30),
    host_ms=st.floats(1.0, 15.0),
    seed=st.integers(0, 1000),
)
def test_steps_queued_ahead_are_those_before_the_queue_is_full(
    filling: int, host_ms: float, seed: int
) -> None:
    # The device takes 18 ms; the host's first steps take less, what it gained is left at the end.
    times = 18.0 * (1 + np.random.default_rng(seed).normal(scale=0.002, size=60))
    times[:filling] = host_ms
    found = queued_ahead(times, float(np.sum(18.0 - times)))
    assert found == filling or filling * (18.0 - host_ms) <= 19.0


def test_a_change_of_speed_is_not_taken_for_queueing() -> None:
    slower = np.array([10.0] * 30 + [12.0] * 30)
    assert queued_ahead(slower, 0.0) == 0
    # A host that is one step ahead all the time.
    assert queued_ahead(slower, 11.9) < 15
    # The queue fills in 9 steps; then the device itself becomes slower.
    both = np.array([2.0] * 9 + [18.0] * 21 + [25.0] * 30)
    assert queued_ahead(both, 9 * 18.0) < 20
    assert queued_ahead(both[::-1], 9 * 18.0) == 0, "slow steps first queue nothing"


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_recorded_sessions_come_to_a_steady_state_early(name: str) -> None:
    found = find_steady(RECORDED[name], 0.05)
    assert found.cut is not None, found.reason
    assert found.cut <= len(RECORDED[name]) // 2
    assert found.cut >= 1, "the first step compiles and takes 100 times as long"


def test_stretches_of_recorded_sessions_rarely_cry_wolf() -> None:
    alarms: dict[str, list[bool]] = {}
    for name, times in RECORDED.items():
        for start in range(8, len(times) - 100, 50):
            alarm = change_point(times[start : start + 100], 0.05) is not None
            alarms.setdefault(name.split("-")[0], []).append(alarm)
    assert not any(alarms["gpu_bound"])
    assert np.mean(alarms["host_bound"]) <= 0.25, "its level truly wanders by 10 %"
    assert np.mean(alarms["pipeline"]) <= 0.10


def test_autocorrelated_steps_are_steady() -> None:
    alarms = [change_point(restless(100, seed), 0.03) is not None for seed in range(200)]
    assert sum(alarms) <= 2


def test_periodic_stalls_and_heavy_tails_are_steady() -> None:
    alarms = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        times = restless(200, seed) * np.where(rng.random(200) < 0.04, 10.0, 1.0)
        times[::45] += 400.0
        alarms += change_point(times, 0.05) is not None
    assert alarms <= 1


def test_a_drift_of_one_percent_is_not_material() -> None:
    times = restless(200, 1, noise=0.001) * np.linspace(1.0, 1.01, 200)
    assert change_point(times, 0.05) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_step_that_becomes_slower_halfway_is_found(seed: int) -> None:
    times = restless(120, seed)
    times[60:] *= 1.10
    found = change_point(times, 0.05)
    assert found is not None
    assert abs(found.at - 60) <= 12
    assert found.after_ms / found.before_ms == pytest.approx(1.10, abs=0.04)
    assert "+" in str(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_linear_drift_of_a_fifth_is_found(seed: int) -> None:
    times = restless(100, seed) * np.linspace(1.0, 1.2, 100)
    assert change_point(times, 0.05) is not None
    assert find_steady(times, 0.05, min_tail=90).cut is None


def test_a_slow_share_of_steps_is_found_though_the_median_stays() -> None:
    times = restless(200, 3, noise=0.005)
    times[100::5] *= 2.0
    assert np.median(times[:100]) == pytest.approx(np.median(times[100:]), rel=0.02)
    assert change_point(times, 0.05) is not None


def test_slow_compile_steps_are_cut_off() -> None:
    times = restless(90, 2)
    times[:30] *= 3.0
    found = find_steady(times, 0.05)
    assert found.cut is not None
    assert 30 <= found.cut <= 45


def test_one_huge_first_step_is_cut_off() -> None:
    times = restless(60, 2)
    times[0] = 1500.0
    assert find_steady(times, 0.05).cut == 1


def test_recompilations_and_new_memory_move_the_cut() -> None:
    times = restless(80, 4)
    compiled = [1] * 10 + [2] * 70
    found = find_steady(times, 0.05, recompilations=compiled)
    assert found.cut == 11
    reserved = [10 * 2**30] * 40 + [12 * 2**30] * 40
    assert find_steady(times, 0.05, recompilations=compiled, reserved_bytes=reserved).cut == 41
    given_back = [12 * 2**30] * 40 + [10 * 2**30] * 20 + [12 * 2**30] * 20
    assert find_steady(times, 0.05, reserved_bytes=given_back).cut == 0


def test_what_never_ends_is_named() -> None:
    times = restless(60, 5)
    found = find_steady(times, 0.05, recompilations=list(range(60)))
    assert found.cut is None
    assert found.reason == "code was still being compiled in step 60"
    assert "warm-up steps so far" in find_steady(times[:5], 0.05).reason
    slower = restless(60, 5) * np.linspace(1, 3, 60)
    assert "step times changed by +" in find_steady(slower, 0.05, min_tail=50).reason


def test_too_few_steps_cannot_be_judged() -> None:
    assert change_point([1.0, 1.0, 5.0, 5.0], 0.05) is None


def test_a_constant_series_is_steady_and_an_exact_change_is_not() -> None:
    assert change_point([10.0] * 50, 0.05) is None
    assert change_point([10.0] * 25 + [10.5] * 25, 0.05) is not None


@pytest.mark.parametrize(("tolerance", "least"), [(0.05, 0.025), (0.01, 0.01), (None, 0.025)])
def test_material_is_half_the_tolerance_at_least_a_percent(
    tolerance: float | None, least: float
) -> None:
    assert material_change(tolerance) == least


def slow_best_step(levels: list[float]) -> tuple[int, float, float]:
    """Each split by the textbook's two-sample t."""
    best = (0, 0.0, -1.0)
    count = len(levels)
    edge = max(2, count // 6)
    for split in range(edge, count - edge + 1):
        left, right = levels[:split], levels[split:]
        a, b = sum(left) / len(left), sum(right) / len(right)
        rest = sum((x - a) ** 2 for x in left) + sum((x - b) ** 2 for x in right)
        noise = (rest / (count - 2) * (1 / len(left) + 1 / len(right))) ** 0.5
        t = abs(b - a) / noise
        if t > best[2]:
            best = (split, b - a, t)
    return best


@settings(max_examples=60)
@given(st.lists(st.floats(1.0, 2.0), min_size=8, max_size=20, unique=True))
def test_the_step_fit_equals_the_textbooks_t(levels: list[float]) -> None:
    split, change, t = steady._best_step(np.array(levels))
    slow_split, slow_change, slow_t = slow_best_step(levels)
    if slow_t < 1e4:  # beyond it both are rounding noise
        assert t == pytest.approx(slow_t, rel=1e-4, abs=1e-4)
        if split == slow_split:
            assert change == pytest.approx(slow_change, abs=1e-9)


@settings(max_examples=60)
@given(st.lists(st.floats(1.0, 2.0), min_size=8, max_size=20, unique=True))
def test_the_line_fit_equals_numpys(levels: list[float]) -> None:
    rise, t = steady._line(np.array(levels))
    places = np.arange(len(levels))
    (slope, _), covariance = np.polyfit(places, levels, 1, cov=True)
    assert rise == pytest.approx(slope * len(levels), abs=1e-9)
    expected = abs(slope) / np.sqrt(covariance[0, 0])
    if expected < 1e4:
        assert t == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("at", "before_ms", "after_ms", "tolerance", "matters"),
    [
        (53, 73.9, 114.0, 0.5, False),  # seven slow steps of sixty move the mean by 6 %
        (30, 73.9, 130.0, 0.5, True),
        (7, 130.0, 73.9, 0.5, False),
        (50, 10.0, 10.2, 0.03, False),
        (50, 10.0, 10.4, 0.03, True),
        (20, 10.0, 8.0, 0.05, True),
    ],
)
def test_a_change_matters_as_far_as_it_moves_the_mean_of_its_pass(
    at: int, before_ms: float, after_ms: float, tolerance: float, matters: bool
) -> None:
    steps = 100 if tolerance < 0.5 else 60
    change = ChangePoint(at, before_ms, after_ms)
    assert material_to_mean(change, steps, tolerance) is matters
