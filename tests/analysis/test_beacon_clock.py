from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis.beacon_clock import SolvedClock, blind_stretches, solve_clock

MS = 1_000_000


def beacon_log(seed: int, length_ms: int = 5_000) -> list[int]:
    choose, now, log = random.Random(seed), 0, []
    while now < length_ms * MS:
        log.append(now)
        now += round(choose.uniform(15, 45) * MS)
    return log


def looks_at(log: list[int], offset_ns: int, seed: int, rate_hz: float = 100.0) -> np.ndarray:
    """(sampler's time, state) of looks at random moments, as py-spy's are."""
    choose, now, rows = random.Random(seed), log[0] + 50 * MS, []
    while now < log[-1]:
        state = (int(np.searchsorted(log, now, side="right")) - 1) % 2
        rows.append((now - offset_ns, state))
        now += round(choose.expovariate(rate_hz) * 1e9)
    return np.array(rows, np.int64)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), offset_ms=st.integers(0, 400))
def test_the_offset_is_found_to_half_a_millisecond(seed: int, offset_ms: int) -> None:
    log = beacon_log(seed)
    looks = looks_at(log, offset_ms * MS, seed + 1)
    found = solve_clock(looks[:, 0], looks[:, 1], np.array(log), (0, 500 * MS))
    assert isinstance(found, SolvedClock)
    assert abs(found.offset_ns - offset_ms * MS) <= found.uncertainty_ns
    assert found.uncertainty_ns < MS
    assert found.agreeing == 1.0


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_stamps_that_come_late_do_not_move_the_offset_by_a_millisecond(seed: int) -> None:
    log = beacon_log(seed)
    looks = looks_at(log, 70 * MS, seed + 1)
    choose = random.Random(seed + 2)
    # One in four was put aside between the look and its stamp, one in a hundred for long.
    late = [choose.expovariate(1 / 3) if choose.random() < 0.25 else 0.0 for _ in looks]
    late = [one + (60 if choose.random() < 0.01 else 0) for one in late]
    times = looks[:, 0] + (np.array(late) * MS).astype(np.int64)
    found = solve_clock(times, looks[:, 1], np.array(log), (0, 500 * MS))
    assert isinstance(found, SolvedClock)
    assert abs(found.offset_ns - 70 * MS) <= MS


@pytest.mark.parametrize("seed", range(5))
def test_looks_of_which_a_fifth_shows_anything_still_give_a_clock(seed: int) -> None:
    log = beacon_log(seed)
    looks = looks_at(log, 70 * MS, seed + 1)
    choose = random.Random(seed + 2)
    states = [choose.randrange(2) if choose.random() < 0.2 else int(one) for one in looks[:, 1]]
    found = solve_clock(looks[:, 0], np.array(states), np.array(log), (0, 500 * MS))
    assert isinstance(found, SolvedClock)
    assert abs(found.offset_ns - 70 * MS) <= MS


def test_a_sampler_that_never_agrees_gives_no_clock() -> None:
    log = beacon_log(1)
    choose = random.Random(2)
    times = np.array(sorted(choose.randrange(0, 5_000 * MS) for _ in range(400)), np.int64)
    states = np.array([choose.randrange(2) for _ in range(400)], np.int64)
    found = solve_clock(times, states, np.array(log), (0, 500 * MS))
    assert isinstance(found, str)
    assert "agree" in found


def test_too_few_looks_give_no_clock() -> None:
    assert isinstance(solve_clock(np.arange(3), np.zeros(3, np.int64), np.arange(50), (0, MS)), str)


@pytest.mark.parametrize("length_ms", [100, 150, 2_800])
def test_a_stopped_sampler_is_noticed(length_ms: int) -> None:
    log = beacon_log(3, 8_000)
    looks = looks_at(log, 0, 4)[:, 0]
    stopped = 2_000 * MS
    resumed = stopped + (length_ms + 60) * MS
    looks = np.unique(np.append(looks[(looks <= stopped) | (looks >= resumed)], resumed))
    found = blind_stretches(looks, np.array(log), 100 * MS)
    within = [one for one in found if stopped <= one[0] and one[1] <= resumed]
    assert len(within) == 1
    assert within[0][1] - within[0][0] >= length_ms * MS


def test_a_beacon_that_stood_still_is_no_blindness() -> None:
    log = np.array([0, 20, 40, 900, 920, 940]) * MS
    looks = np.array([5, 25, 45, 905, 925, 945]) * MS
    assert blind_stretches(looks, log, 100 * MS) == []
    assert blind_stretches(looks, np.sort(np.append(log, 400 * MS)), 100 * MS) == [
        (400 * MS, 905 * MS)
    ]


@pytest.mark.parametrize("doubt_ms", [0, 20, 40])
def test_a_blind_stretch_outlasts_the_doubt_about_the_clock(doubt_ms: int) -> None:
    log = np.arange(0, 2_000, 10) * MS
    looks = np.array([*range(0, 500, 10), *range(690, 2_000, 10)]) * MS
    found = blind_stretches(looks, log, 100 * MS, doubt_ms * MS)
    # The sampler looked at 490 ms and again at 690 ms; the doubt takes its share of both ends.
    assert found == [((490 + doubt_ms + 10) * MS, 690 * MS)]
    assert blind_stretches(looks, log, 100 * MS, 50 * MS) == []
