"""A GPU-bound training loop recorded on an H200 (CUDA activities), with the faults it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.evidence_files import read
from pytest_tokbudget.analysis.causes import Cause
from pytest_tokbudget.analysis.ledger import DeviceLedger, Ledger, build_ledger

RECORDING = Path(__file__).parents[1] / "data" / "evidence" / "gpu_bound_cuda.npz"


def ledger_of(fault: str) -> tuple[DeviceLedger, int]:
    """The only device's ledger of one window, and the window's length in ns."""
    timeline = read(RECORDING).timeline(fault)
    ledger = build_ledger(timeline)
    assert isinstance(ledger, Ledger)
    return ledger.devices[0], timeline.window.end_ns - timeline.window.start_ns


@pytest.mark.parametrize("fault", ["none", "item", "cache"])
def test_the_rows_sum_to_the_window(fault: str) -> None:
    device, window_ns = ledger_of(fault)

    assert sum(row.ns for row in device.rows) == window_ns
    assert device.busy_ns + device.idle_ns == window_ns


def test_churn_lies_with_the_allocator_and_a_blocking_read_does_not() -> None:
    churned, _ = ledger_of("cache")
    read_back, _ = ledger_of("item")

    idle = [row for row in churned.rows if row.cause > Cause.SET]
    assert max(idle, key=lambda row: row.ns).cause is Cause.ALLOCATOR
    assert read_back.ns(Cause.ALLOCATOR) == 0


def test_kernel_time_is_the_same_under_every_fault() -> None:
    busy_ns = [ledger_of(fault)[0].busy_ns for fault in ("none", "item", "cache")]

    assert max(busy_ns) <= 1.01 * min(busy_ns)
