from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_tokbudget.analysis.causes import Cause
from pytest_tokbudget.analysis.ledger import Ledger, build_ledger
from pytest_tokbudget.analysis.timeline import Timeline, Window
from pytest_tokbudget.analysis.trace_rows import KnownThread, timeline_from_rows
from pytest_tokbudget.records.base import Unavailable
from tests.trace_builder import LOADER, TraceBuilder

EVIDENCE = Path(__file__).parents[1] / "data" / "evidence"


def ledger_of(timeline: Timeline) -> Ledger:
    ledger = build_ledger(timeline)
    assert isinstance(ledger, Ledger), ledger
    return ledger


def test_two_devices_each_half_idle_are_each_half_idle() -> None:
    trace = TraceBuilder()
    for at in range(40):
        begin = 20_000 * at
        trace.launch(begin - 6_000, begin, 10_000, device=0)
        trace.launch(begin + 4_000, begin + 10_000, 10_000, device=1, thread=LOADER)
    ledger = ledger_of(trace.timeline(0, 800_000))
    assert [one.busy_ns for one in ledger.devices] == [400_000, 400_000]
    assert [one.idle_ns for one in ledger.devices] == [400_000, 400_000]


def test_a_device_without_any_event_did_no_work() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 1_000)
    ledger = ledger_of(trace.timeline(0, 10_000, devices=(0, 1)))
    assert [(row.cause, row.ns) for row in ledger.device(1).rows] == [(Cause.NO_WORK, 10_000)]


def test_waiting_for_another_device_names_it() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 1_000, device=0)
    trace.launch(10_000, 15_000, 30_000, device=1)
    wait = trace.call("cudaStreamWaitEvent", 13_500, 500)
    trace.sync_record("Stream Wait Event", device=0, stream=7, correlation=wait)
    trace.launch(14_000, 46_000, 1_000, device=0)
    first = ledger_of(trace.timeline(0, 47_000)).device(0)
    rows = {row.title: row.ns for row in first.rows}
    assert rows["waiting for cuda:1"] == 45_000 - 17_000
    assert rows["host late: serving cuda:1"] == 3_000


def test_without_being_told_to_wait_no_other_device_is_blamed() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 1_000, device=0)
    trace.launch(10_000, 15_000, 30_000, device=1)
    trace.launch(14_000, 46_000, 1_000, device=0)
    assert ledger_of(trace.timeline(0, 47_000)).device(0).ns(Cause.STREAM_DEPENDENCY) == 0


def test_a_wait_that_is_older_than_the_last_launch_explains_nothing() -> None:
    trace = TraceBuilder()
    wait = trace.call("cudaStreamWaitEvent", 0, 500)
    trace.sync_record("Stream Wait Event", device=0, stream=7, correlation=wait)
    trace.launch(1_000, 5_000, 1_000, device=0)
    trace.launch(10_000, 15_000, 30_000, device=1)
    trace.launch(14_000, 46_000, 1_000, device=0)
    assert ledger_of(trace.timeline(0, 47_000)).device(0).ns(Cause.STREAM_DEPENDENCY) == 0


def test_an_event_that_ends_as_the_waiter_starts_was_waited_for() -> None:
    trace = TraceBuilder()
    trace.launch(10_000, 15_000, 30_000, device=1)
    trace.call("cudaStreamWaitEvent", 13_500, 500)
    trace.launch(14_000, 45_000, 1_000, device=0)
    assert ledger_of(trace.timeline(0, 46_000)).device(0).ns(Cause.STREAM_DEPENDENCY) == 28_000


def test_a_device_clock_that_is_late_or_early_moves_nothing_to_the_host() -> None:
    def rows(skew: int) -> dict[str, int]:
        trace = TraceBuilder()
        for at in range(50):
            trace.launch(20_000 * at, 20_000 * at + skew, 5_000, call_dur=1_000)
        return {row.title: row.ns for row in ledger_of(trace.timeline(0, 1_000_000)).device(0).rows}

    exact = rows(0)
    assert rows(-15_000) == exact
    assert exact["compute"] == 250_000


def test_clocks_further_apart_than_allowed_make_the_trace_incomplete() -> None:
    trace = TraceBuilder()
    for at in range(50):
        trace.launch(50_000 * at, 50_000 * at - 30_000, 5_000)
    found = build_ledger(trace.timeline(-50_000, 2_500_000))
    assert isinstance(found, Unavailable)
    assert "50 with impossible times" in found.reason


@pytest.mark.parametrize(("lost", "complete"), [(1, True), (2, False)])
def test_one_percent_lost_launches_are_borne(lost: int, complete: bool) -> None:
    trace = TraceBuilder()
    for at in range(100):
        if at < lost:
            trace.kernel(20_000 * at, 5_000, correlation=9_000 + at)
        else:
            trace.launch(20_000 * at - 6_000, 20_000 * at, 5_000)
    found = build_ledger(trace.timeline(0, 2_000_000))
    assert isinstance(found, Ledger) == complete
    if isinstance(found, Unavailable):
        assert "trace incomplete: 2.0% of 100 records" in found.reason
        assert found.remedy


def test_kernels_that_vanished_make_the_trace_incomplete() -> None:
    trace = TraceBuilder()
    for at in range(40):
        trace.call("cudaLaunchKernel", 10_000 * at, 3_000)
    trace.launch(1_000, 5_000, 1_000)
    found = build_ledger(trace.timeline(0, 400_000))
    assert isinstance(found, Unavailable)
    assert "40 launches without a kernel" in found.reason


def test_launches_into_a_graph_capture_are_not_lost() -> None:
    trace = TraceBuilder()
    trace.call("cudaStreamBeginCapture", 0, 100)
    for at in range(40):
        trace.call("cudaLaunchKernel", 1_000 + 100 * at, 50)
    trace.call("cudaStreamEndCapture", 9_000, 100)
    graph = trace.call("cudaGraphLaunch", 10_000, 3_000)
    for at in range(5):
        trace.kernel(15_000 + 3_000 * at, 2_000, correlation=graph)
    ledger = ledger_of(trace.timeline(0, 29_000))
    assert ledger.completeness.vanished == 0
    assert ledger.device(0).ns(Cause.INSIDE_GRAPH) == 4_000


def test_a_stall_of_the_profiler_is_not_the_hosts() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 1_000)
    trace.stall(8_000, 50_000)
    trace.launch(60_000, 65_000, 1_000)
    assert ledger_of(trace.timeline(0, 66_000)).device(0).ns(Cause.PROFILER) == 50_000


def test_a_window_without_steps_is_unavailable() -> None:
    assert isinstance(build_ledger(TraceBuilder().timeline(5, 5)), Unavailable)


def recorded(fault: str) -> tuple[Timeline, dict[str, list[float]]]:
    meta = json.loads((EVIDENCE / "h200_launch_cuda.json").read_text())
    with np.load(EVIDENCE / "h200_launch_cuda.npz") as file:
        rows = np.cumsum(file["delta"].T, axis=0)
    rows = rows[rows[:, 0] == meta["faults"].index(fault)]
    threads = [KnownThread(*one) for one in meta["threads"]]
    window = Window(*meta["windows"][fault])
    return timeline_from_rows(rows, tuple(meta["names"]), threads, window), meta


@pytest.mark.parametrize("fault", ["none", "cache"])
def test_a_recorded_window_is_partitioned_to_the_nanosecond(fault: str) -> None:
    timeline, _ = recorded(fault)
    ledger = ledger_of(timeline)
    assert ledger.completeness.matched_share >= 0.99
    (device,) = ledger.devices
    assert sum(row.ns for row in device.rows) == timeline.window.wall_ns
    per_step = device.ms_per_step()
    # 2.36 ms of kernels a step in every window of that run, whatever else it did.
    assert per_step["compute"] == pytest.approx(2.36, rel=0.02)
    assert device.calibration.samples > 1_000
    assert 2_000 < device.calibration.latency_ns < 5_000
    assert (per_step.get("host late: allocator", 0.0) > 2.0) == (fault == "cache")
