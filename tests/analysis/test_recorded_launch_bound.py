"""A launch-bound loop recorded on an H200 whose host wandered by a third: faults, one at a time.

Twelve steps of each window; the truth beside them is that of the whole recording: alternating
unprofiled blocks, ± one standard error.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.evidence_files import read
from benchmarks.recorded_sessions import load_session
from pytest_tokbudget.analysis.cause_table import cause_table
from pytest_tokbudget.analysis.growth import growth_findings
from pytest_tokbudget.analysis.ledger import Ledger, build_ledger
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.records.causes import CauseTable
from pytest_tokbudget.records.result import Finding

RECORDING = Path(__file__).parents[1] / "data" / "evidence" / "launch_bound_cuda.npz"


def causes_of(fault: str, compared_with: str) -> CauseTable:
    """The causes of one window, its step as measured in the blocks of ``compared_with``."""
    truth = read(RECORDING).meta["truth"][compared_with]
    step_ms = truth["reference_ms"] + truth["cost_ms"] * (fault != "none")
    (one,) = (each for each in load_session(RECORDING) if each.fault == fault)
    program = decode(one.timeline, None, one.queues, one.main_thread).program
    return cause_table(one.timeline, program, step_ms)


def growth_of(fault: str) -> list[Finding]:
    return growth_findings(causes_of(fault, fault), causes_of("none", fault))


def test_churn_is_the_allocators() -> None:
    first, *_ = growth_of("cache")

    assert first.cause == "allocator"
    # 5.85 ± 0.59 ms
    truth_ms = read(RECORDING).meta["truth"]["cache"]["cost_ms"]
    assert 0 < (first.delta_ms_per_step or 0.0) <= truth_ms


def test_a_stream_held_where_the_device_idles_anyway_costs_what_the_step_grew() -> None:
    cost_ms = read(RECORDING).meta["truth"]["stream"]["cost_ms"]  # 0.26 ± 0.36 ms, 3 ms injected

    costs = [one.delta_ms_per_step or 0.0 for one in growth_of("stream")]
    assert sum(costs) <= cost_ms + 1e-9


@pytest.mark.parametrize("fault", ["none", "cache", "stream"])
def test_the_rows_sum_to_the_window(fault: str) -> None:
    timeline = read(RECORDING).timeline(fault)
    ledger = build_ledger(timeline)

    assert isinstance(ledger, Ledger)
    for device in ledger.devices:
        assert sum(row.ns for row in device.rows) == timeline.window.wall_ns
