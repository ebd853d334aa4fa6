from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from pytest_tokbudget.analysis.beacon_clock import SolvedClock, solve_clock
from pytest_tokbudget.evidence import pyspy
from pytest_tokbudget.evidence.beacon import Beacon
from pytest_tokbudget.evidence.stacks import StackSampler, fitting_rate_hz
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.cpu import SampledStacks
from tests.evidence.fake_pyspy import fake_pyspy

ODD_NAMES = ("two words; semi", "ünïcode 線", "[brackets] (and) {braces}", 'quote " back\\slash')


@pytest.fixture
def beacon() -> Iterator[Beacon]:
    one = Beacon()
    one.start()
    yield one
    one.stop()


def marker_a(seconds: float) -> None:
    time.sleep(seconds)


def marker_b(seconds: float) -> None:
    time.sleep(seconds)


def sample_for(sampler: StackSampler, seconds: float) -> list[int]:
    """Alternate two functions while sampled; return when each was entered, monotonic ns."""
    entered: list[int] = []
    sampler.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        entered.append(time.monotonic_ns())
        (marker_a, marker_b)[(len(entered) - 1) % 2](0.023)
    sampler.stop()
    return entered


@pytest.mark.alone
@pytest.mark.usefixtures("no_children_left")
def test_stacks_are_aligned_to_this_process_within_a_millisecond(beacon: Beacon) -> None:
    sampler = StackSampler(beacon)
    entered = sample_for(sampler, 3.0)
    stacks = sampler.record()
    assert isinstance(stacks, SampledStacks)
    assert stacks.sampler.startswith("py-spy")
    main = [at for at, one in enumerate(stacks.threads) if one.native_id == os.getpid()]
    state = np.full(len(stacks.round_ns), -1, np.int64)
    for thread, stack, first, last in zip(
        stacks.run_thread, stacks.run_stack, stacks.run_first, stacks.run_last
    ):
        leaf = stacks.frames[stacks.stacks[stack][-1]][0]
        if thread in main and leaf in ("marker_a", "marker_b"):
            state[first:last] = int(leaf == "marker_b")
    seen = state >= 0
    times = np.array(stacks.round_ns, np.int64)[seen] + stacks.threads[main[0]].lag_ns
    error = solve_clock(times, state[seen], np.array(entered), (-20_000_000, 20_000_000))
    assert isinstance(error, SolvedClock)
    assert abs(error.offset_ns) <= 1_000_000 + error.uncertainty_ns
    assert not any(one.name.startswith("tokbudget-") for one in stacks.threads)


@pytest.mark.alone
@pytest.mark.usefixtures("no_children_left")
def test_odd_names_many_threads_and_ended_ones(beacon: Beacon) -> None:
    over = threading.Event()
    threads = [threading.Thread(target=over.wait, name=name) for name in ODD_NAMES]
    threads += [threading.Thread(target=over.wait, name=f"idle-{at}") for at in range(300)]
    for one in threads:
        one.start()
    sampler = StackSampler(beacon)
    sample_for(sampler, 3.0)
    over.set()
    for one in threads:
        one.join()
    first = threads[0]
    stacks = sampler.record({first.native_id or 0: (0, beacon.entered_ns[0])})
    assert isinstance(stacks, SampledStacks)
    names = {one.name for one in stacks.threads}
    assert {*ODD_NAMES, "idle-0", "idle-299"} <= names
    assert stacks.rate_hz < 30
    at = next(at for at, one in enumerate(stacks.threads) if one.native_id == first.native_id)
    assert at not in stacks.run_thread


@pytest.mark.usefixtures("no_children_left")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("refused", "may not look into this process: Error: Failed"),
        ("silent", "ended with status 3"),
        ("stubborn", "did not end within"),
        ("torn", "cannot be read"),
        ("empty", "sampled nothing"),
    ],
)
def test_failures_are_told(
    beacon: Beacon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, reason: str
) -> None:
    if how == "stubborn":
        monkeypatch.setattr(pyspy, "ENDS_WITHIN_S", 0.3)
    sampler = StackSampler(beacon, fake_pyspy(tmp_path, how))
    sampler.start()
    sampler.stop()
    found = sampler.record()
    assert isinstance(found, Unavailable)
    assert reason in found.reason
    if how == "refused":
        assert "SYS_PTRACE" in found.remedy


@pytest.mark.alone
@pytest.mark.usefixtures("no_children_left")
def test_a_sampler_killed_midway_is_told(beacon: Beacon) -> None:
    sampler = StackSampler(beacon)
    sampler.start()
    (spy,) = [one for one in psutil.Process().children() if "py-spy" in one.name()]
    spy.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, spy.pid, os.WEXITED | os.WNOWAIT)  # it has ended and is not reaped
    sampler.stop()
    found = sampler.record()
    assert isinstance(found, Unavailable)
    assert "killed by SIGKILL" in found.reason


@pytest.mark.alone
@pytest.mark.usefixtures("no_children_left")
def test_a_sampler_that_stood_still_is_noticed_and_that_stretch_left_out(beacon: Beacon) -> None:
    sampler = StackSampler(beacon)
    sampler.start()
    (spy,) = [one for one in psutil.Process().children() if "py-spy" in one.name()]
    time.sleep(0.5)
    spy.suspend()
    stopped = time.monotonic_ns()
    time.sleep(0.4)
    resumed = time.monotonic_ns()
    spy.resume()
    time.sleep(0.5)
    sampler.stop()
    stacks = sampler.record()
    assert isinstance(stacks, SampledStacks)
    noticed = sum(max(0, min(end, resumed) - max(start, stopped)) for start, end in stacks.blind)
    assert noticed >= 300_000_000
    whole = (stacks.round_ns[-1] - stacks.round_ns[0]) / 1e9
    assert stacks.seconds <= whole - 0.3


def test_a_missing_program_is_told(beacon: Beacon, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = StackSampler(beacon, "/nowhere/py-spy")
    gone.start()
    gone.stop()
    assert "cannot be started" in str(gone.record())
    monkeypatch.setattr("pytest_tokbudget.evidence.stacks.find_pyspy", lambda: None)
    missing = StackSampler(beacon)
    missing.start()
    missing.stop()
    assert str(missing.record()) == "py-spy is not installed (pip install py-spy)"


@pytest.mark.parametrize(("cost_ms", "rate_hz"), [(0.1, 100), (2, 35), (60, 4)])
def test_the_rate_fits_the_cost_of_a_round(cost_ms: float, rate_hz: float) -> None:
    assert fitting_rate_hz(cost_ms * 1e6) == pytest.approx(rate_hz)
