"""The example pipeline recorded on an H200: seven threads, one device, faults in its drafter.

Six steps of each window; the truth beside them is that of the whole recording: alternating
unprofiled blocks, ± one standard error.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.evidence_files import read
from benchmarks.recorded_sessions import load_session
from pytest_tokbudget.analysis.cause_table import cause_table
from pytest_tokbudget.analysis.growth import growth_findings
from pytest_tokbudget.analysis.ledger import Ledger, build_ledger
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_lanes import lane_events
from pytest_tokbudget.records.causes import CauseTable

RECORDING = Path(__file__).parents[1] / "data" / "evidence" / "dflash_cuda.npz"


@cache
def causes_of(fault: str, compared_with: str) -> CauseTable:
    """The causes of one window, its step as measured in the blocks of ``compared_with``."""
    truth = read(RECORDING).meta["truth"][compared_with]
    step_ms = truth["reference_ms"] + truth["cost_ms"] * (fault != "none")
    (one,) = (each for each in load_session(RECORDING) if each.fault == fault)
    program = decode(one.timeline, None, one.queues, one.main_thread).program
    return cause_table(one.timeline, program, step_ms)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("item", "synchronization"), ("cache", "allocator"), ("copy", "copies")],
)
def test_the_fault_is_the_first_cause_and_costs_no_more_than_was_measured(
    fault: str, cause: str
) -> None:
    first, *_ = growth_findings(causes_of(fault, fault), causes_of("none", fault))

    # item 6.74 ± 0.43 ms, cache 28.19 ± 1.54, copy 7.22 ± 0.37
    truth_ms = read(RECORDING).meta["truth"][fault]["cost_ms"]
    assert (first.cause, first.thread) == (cause, "drafter-0")
    assert 0 < (first.delta_ms_per_step or 0.0) <= 1.1 * truth_ms


def test_the_backward_pass_counts_for_the_drafter() -> None:
    timeline = read(RECORDING).timeline("none")
    lanes = [timeline.threads[one].name for one in lane_events(timeline, None).threads]

    assert "drafter-0" in lanes
    assert "MainThread" not in lanes


@pytest.mark.parametrize("fault", ["none", "item", "cache", "copy"])
def test_the_rows_sum_to_the_window(fault: str) -> None:
    timeline = read(RECORDING).timeline(fault)
    ledger = build_ledger(timeline)

    assert isinstance(ledger, Ledger)
    assert sum(row.ns for row in ledger.devices[0].rows) == (
        timeline.window.end_ns - timeline.window.start_ns
    )
