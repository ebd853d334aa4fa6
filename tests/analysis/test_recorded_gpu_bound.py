"""Training loops recorded on an H200 (CUDA activities), with the faults they were given."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.evidence_files import read
from pytest_tokbudget.analysis.cause_table import cause_table
from pytest_tokbudget.analysis.causes import Cause
from pytest_tokbudget.analysis.device_growth import STREAM_WAIT
from pytest_tokbudget.analysis.growth import growth_findings
from pytest_tokbudget.analysis.ledger import DeviceLedger, Ledger, build_ledger
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_lanes import lane_events
from pytest_tokbudget.analysis.stream_waits import exposed_wait_ns
from pytest_tokbudget.records.causes import CauseTable

EVIDENCE = Path(__file__).parents[1] / "data" / "evidence"
RECORDING = EVIDENCE / "gpu_bound_cuda.npz"
WITH_STREAMS = EVIDENCE / "gpu_bound_stream_cuda.npz"
PIPELINE = EVIDENCE / "pipeline_cuda.npz"


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


def causes_of(fault: str) -> CauseTable:
    """The table of one window's causes, its step as the alternating blocks measured it.

    Its six steps are cut where the host was ahead of the device: kernel time is that of fewer.
    """
    evidence = read(WITH_STREAMS)
    truth = evidence.meta["truth"]["stream"]
    step_ms = truth["reference_ms"] + truth["cost_ms"] * (fault == "stream")
    timeline = evidence.timeline(fault)
    return cause_table(timeline, decode(timeline).program, step_ms)


def test_a_stream_that_waits_for_another_is_named_and_priced() -> None:
    findings = growth_findings(causes_of("stream"), causes_of("none"))

    truth_ms = read(WITH_STREAMS).meta["truth"]["stream"]["cost_ms"]  # 2.56 ± 0.03
    assert findings[0].cause == STREAM_WAIT
    assert findings[0].delta_ms_per_step == pytest.approx(truth_ms, rel=0.1)


@pytest.mark.parametrize("fault", ["none", "stream"])
def test_launch_bound_threads_whose_streams_are_never_held_expose_no_waits(fault: str) -> None:
    # Its streams wait for events in every step, all of them met before the next launch: here the
    # injected wait costs -0.13 +- 0.20 ms a step.
    assert exposed_wait_ns(read(PIPELINE).timeline(fault), 0) == 0


def test_the_backward_pass_belongs_to_the_thread_that_trains_and_not_to_one_that_only_waits() -> (
    None
):
    timeline = read(PIPELINE).timeline("none")
    events = lane_events(timeline, None)

    # The main thread launched before the window (a canary), and then only slept: the most silent.
    assert [timeline.threads[one].name for one in events.threads] == ["target-0", "drafter-0"]
