"""A launch-bound loop recorded on an H200 whose host wandered by a third: faults, one at a time.

Twelve steps of each window; the truth beside them is that of the whole recording: alternating
unprofiled blocks, ± one standard error.
"""

from __future__ import annotations

import pytest

from benchmarks.evidence_files import read
from pytest_tokbudget.analysis.ledger import Ledger, build_ledger
from tests.analysis.recorded import RECORDINGS, growth_of, truth_ms

RECORDING = RECORDINGS / "launch_bound_cuda.npz"


def test_churn_is_the_allocators() -> None:
    first, *_ = growth_of(RECORDING, "cache")

    assert first.cause == "allocator"
    # 5.85 ± 0.59 ms
    assert 0 < (first.delta_ms_per_step or 0.0) <= truth_ms(RECORDING, "cache")


def test_a_stream_held_where_the_device_idles_anyway_costs_what_the_step_grew() -> None:
    cost_ms = truth_ms(RECORDING, "stream")  # 0.26 ± 0.36 ms, 3 ms injected

    costs = [one.delta_ms_per_step or 0.0 for one in growth_of(RECORDING, "stream")]
    assert sum(costs) <= cost_ms + 1e-9


@pytest.mark.parametrize("fault", ["none", "cache", "stream"])
def test_the_rows_sum_to_the_window(fault: str) -> None:
    timeline = read(RECORDING).timeline(fault)
    ledger = build_ledger(timeline)

    assert isinstance(ledger, Ledger)
    for device in ledger.devices:
        assert sum(row.ns for row in device.rows) == timeline.window.wall_ns
