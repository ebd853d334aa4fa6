from __future__ import annotations

from pytest_tokbudget.analysis.counters import counters_by_step, counters_per_step
from tests.trace_builder import TraceBuilder


def two_steps() -> TraceBuilder:
    trace = TraceBuilder()
    trace.launch(-500, 10, 5, call_dur=10)
    for begin in (0, 1_000):
        trace.launch(begin, begin + 20, 10, call_dur=10)
        copy = trace.call("cudaMemcpyAsync", begin + 100, 10)
        trace.kernel(
            1_050 + begin // 10,
            10,
            name="Memcpy DtoH (Device -> Pageable)",
            correlation=copy,
            nbytes=4_096,
        )
        trace.call("cudaStreamSynchronize", begin + 150, 10)
    trace.call("cudaMalloc", 1_500, 10)
    trace.call("cudaHostAlloc", 1_500, 10)
    trace.call("cudaMemcpy", 1_600, 10)
    return trace


def test_each_step_is_counted_where_the_host_asked() -> None:
    counts = counters_by_step(two_steps().timeline(0, 2_000, steps=2, step_ends=(1_000, 2_000)))
    assert {name: one.tolist() for name, one in counts.items()} == {
        "kernel_launches": [1, 1],
        "graph_launches": [0, 0],
        "memsets": [0, 0],
        "syncs_stream": [1, 1],
        "syncs_copy": [0, 1],
        "device_allocs": [0, 1],
        "host_allocs": [0, 1],
        "copies_dtoh_pageable": [1, 1],
        "copy_bytes_dtoh_pageable": [4_096, 4_096],
    }


def test_without_the_ends_of_steps_there_are_means() -> None:
    counts = counters_per_step(two_steps().timeline(0, 2_000, steps=2))
    assert counts["kernel_launches"] == 1.0
    assert counts["device_allocs"] == 0.5


def test_bytes_that_the_profiler_does_not_give_are_not_counted_as_zero() -> None:
    trace = two_steps()
    trace.kernel(200, 10, name="Memcpy DtoH (Device -> Pageable)", correlation=99)
    counts = counters_per_step(trace.timeline(0, 2_000, steps=2))
    assert "copy_bytes_dtoh_pageable" not in counts
    assert counts["copies_dtoh_pageable"] == 1.5
