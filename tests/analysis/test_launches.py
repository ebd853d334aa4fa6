from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.analysis.launches import calibrate, match_launches
from tests.trace_builder import TraceBuilder


@pytest.mark.parametrize("far", [1, 10**9])
def test_the_launching_call_counts_where_several_share_an_id(far: int) -> None:
    trace = TraceBuilder()
    trace.call("cudaLaunchKernel", 0, 5, correlation=far)
    trace.call("cudaGetErrorString", 6, 1, correlation=far)
    trace.call("cudaLaunchKernel", 10, 5, correlation=2)
    trace.kernel(20, 5, correlation=far)
    trace.kernel(30, 5, correlation=3)
    trace.kernel(40, 5, correlation=2)
    assert match_launches(trace.timeline(0, 100)).tolist() == [0, -1, 2]


def test_latency_and_spacing_are_measured_where_each_shows() -> None:
    trace = TraceBuilder()
    for at in range(30):
        trace.launch(100_000 * at, 100_000 * at + 5_000, 50_000, call_dur=3_000)
    for at in range(30):
        trace.launch(3_000_000 + 1_000 * at, 3_100_000 + 11_000 * at, 10_000, call_dur=500)
    line = trace.timeline(0, 4_000_000)
    found = calibrate(line, match_launches(line), 0)
    assert found.latency_ns == 3_000
    assert found.spacing_ns == 2_000
    assert found.skew_ns == 0


def test_few_launches_give_defaults_and_say_so() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 1_000)
    line = trace.timeline(0, 10_000)
    assert calibrate(line, match_launches(line), 0).samples == 0
    assert np.array_equal(match_launches(TraceBuilder().timeline(0, 10)), np.zeros(0))
