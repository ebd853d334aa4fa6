"""Canaries on a device: a launch-bound pass is cut at a handful of stops, a full queue never."""

from __future__ import annotations

import pytest
import torch

from pytest_tokbudget.measuring import canary
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.devices import TorchDevices
from pytest_tokbudget.measuring.loop import measure_steps
from pytest_tokbudget.measuring.measurement import Measurement
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.records.budget import Budget

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def measured(size: int, launches: int) -> Measurement:
    a = torch.full((size, size), 0.01, device="cuda", dtype=torch.float16)
    out = torch.empty_like(a)

    def step() -> int:
        for _ in range(launches):
            torch.mm(a, a, out=out)
        return 100

    clock = SystemClock()
    return measure_steps(
        step, Recorder(clock), Budget(steps=100, warmup_steps=20), TorchDevices(), clock
    )


def test_a_launch_bound_pass_is_cut_and_pays_at_most_a_few_percent() -> None:
    found = measured(16, 2000)
    (marks,) = found.marks
    assert 1 <= len(marks.pauses_ns) <= canary.MOST_STOPS_ON_DEVICES
    assert found.timing.held_ns < 0.05 * (found.timing.end_ns - found.timing.start_ns)
    names = {(one.name, one.where) for one in found.canaries}
    assert (canary.TINY_STEP, "interleaved") in names
    assert {(canary.MATMUL, "before"), (canary.COPY, "after")} <= names
    assert "canaries" not in found.unavailable


def test_a_pass_that_queues_up_ahead_of_the_device_is_not_cut() -> None:
    found = measured(8192, 4)
    (marks,) = found.marks
    assert marks.pauses_ns == []
    assert {one.where for one in found.canaries} == {"before", "after"}
