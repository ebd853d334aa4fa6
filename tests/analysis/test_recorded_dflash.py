"""The example pipeline recorded on an H200: seven threads, one device, faults in its drafter.

Six steps of each window; the truth beside them is that of the whole recording: alternating
unprofiled blocks, ± one standard error.
"""

from __future__ import annotations

import pytest

from benchmarks.evidence_files import read
from pytest_tokbudget.analysis.ledger import Ledger, build_ledger
from pytest_tokbudget.analysis.replay_lanes import lane_events
from tests.analysis.recorded import RECORDINGS, growth_of, truth_ms

RECORDING = RECORDINGS / "dflash_cuda.npz"


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("item", "synchronization"), ("cache", "allocator"), ("copy", "copies")],
)
def test_the_fault_is_the_first_cause_and_costs_no_more_than_was_measured(
    fault: str, cause: str
) -> None:
    first, *_ = growth_of(RECORDING, fault)

    # item 6.74 ± 0.43 ms, cache 28.19 ± 1.54, copy 7.22 ± 0.37
    assert (first.cause, first.thread) == (cause, "drafter-0")
    assert 0 < (first.delta_ms_per_step or 0.0) <= 1.1 * truth_ms(RECORDING, fault)


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
