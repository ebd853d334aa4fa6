"""Readings of what disturbs a steady state, and when the warm-up is given up."""

from __future__ import annotations

import sys
import types

import pytest

from pytest_tokbudget.measuring.devices import recompilations
from pytest_tokbudget.measuring.warmup import Readings, WarmUpJudge
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeClock, FakeDevices


def dynamo(monkeypatch: pytest.MonkeyPatch, compiled: int) -> None:
    fake = types.ModuleType("torch._dynamo.utils")
    fake.counters = {"frames": {"total": compiled}}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", fake)


def test_between_readings_events_count_as_late_as_they_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices = FakeDevices()
    readings = Readings(devices)
    for steps, compiled in ((1, 1), (2, 1), (6, 3)):
        dynamo(monkeypatch, compiled)
        devices.reserved = steps * 100
        readings.take(steps)
    assert readings.per_step(7) == ([1, 1, 1, 1, 1, 3, 3], [100, 200, 200, 200, 200, 600, 600])


def test_what_disturbed_a_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = FakeDevices()
    readings = Readings(devices)
    dynamo(monkeypatch, 4)
    devices.reserved = 100 * 2**20
    before = readings.now()
    assert readings.disturbed_since(before) == ""
    devices.reserved = 150 * 2**20
    assert readings.disturbed_since(before).startswith("50 MiB of device memory")
    dynamo(monkeypatch, 6)
    assert readings.disturbed_since(before) == "code was compiled 2 times in the timing pass"


def test_recompilations_are_unknown_without_dynamo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    assert recompilations() is None
    dynamo(monkeypatch, 3)
    assert recompilations() == 3


def test_real_dynamo_counts_compilations() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch._dynamo.utils")
    compiled = torch.compile(lambda x: x * 2 + 1, backend="eager", dynamic=False)
    counts = []
    for size in (3, 3, 4):
        compiled(torch.ones(size))
        counts.append(recompilations() or 0)
    assert counts[0] >= 1
    assert [count - counts[0] for count in counts] == [0, 0, 1]


def test_a_tail_must_last_a_second_or_as_long_as_the_pass() -> None:
    judge = WarmUpJudge(Budget(steps=100), FakeClock(), FakeDevices())
    judge.readings.take(1)
    assert judge.judge([1.0] * 40).reason == "the steps were steady for less than a second"
    assert judge.judge([1.0] * 100).cut == 0
    assert judge.judge([50.0] * 20).cut == 0


def test_few_long_steps_need_a_short_tail() -> None:
    judge = WarmUpJudge(Budget(steps=10), FakeClock(), FakeDevices())
    judge.readings.take(1)
    assert judge.judge([5000.0] * 5).cut == 0
    assert judge.judge([5000.0] * 4).cut is None


def test_given_up_after_three_passes_worth_and_a_minute() -> None:
    clock = FakeClock()
    judge = WarmUpJudge(Budget(steps=100), clock, FakeDevices())
    assert not judge.given_up(1000)
    clock.advance(60)
    assert not judge.given_up(299)
    assert judge.given_up(300)
