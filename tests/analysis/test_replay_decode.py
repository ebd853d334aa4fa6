from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_kernels import TYPICAL_SPACING_NS
from pytest_tokbudget.analysis.replay_program import CallKind, Frame, LabelKind, Labels, Waits
from tests.trace_builder import LOADER, MAIN, TraceBuilder

AUTOGRAD = 900


def one_label(kind: LabelKind, start: int, end: int) -> Labels:
    return Labels(
        thread=np.zeros(1, np.int32),
        start_ns=np.array([start], np.int64) + 1_000_000_000,
        end_ns=np.array([end], np.int64) + 1_000_000_000,
        kind=np.array([kind], np.int8),
        frame=np.zeros(1, np.int32),
        frames=(Frame("collate", "data.py", 7),),
        samples=(5,),
    )


def test_gaps_and_calls_of_a_lane_sum_to_the_window() -> None:
    trace = TraceBuilder()
    trace.launch(1_000, 6_000, 2_000)
    trace.launch(10_000, 15_000, 2_000)
    host = decode(trace.timeline(0, 20_000)).program.host
    assert list(host.own_ns) == [1_000, 6_000, 7_000]
    assert list(host.call_ns) == [3_000, 3_000, 0]
    assert host.kind[-1] == CallKind.TAIL


def test_a_window_without_host_calls_is_an_error() -> None:
    with pytest.raises(ValueError, match="host calls"):
        decode(TraceBuilder().timeline(0, 10))


def test_a_synchronization_is_blocked_until_the_device_was_done() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 40_000)
    trace.call("cudaDeviceSynchronize", 4_000, 43_000)
    host = decode(trace.timeline(0, 47_000)).program.host
    assert host.waits[1] == Waits.DEVICE
    assert (host.blocked_ns[1], host.call_ns[1]) == (41_000, 2_000)


def test_an_unused_stream_is_not_waited_for() -> None:
    waits = {}
    for stream in (7, 13):
        trace = TraceBuilder()
        trace.launch(0, 5_000, 40_000, stream=7)
        sync = trace.call("cudaStreamSynchronize", 4_000, 3_000)
        trace.sync_record("Stream Sync", device=0, stream=stream, correlation=sync)
        host = decode(trace.timeline(0, 50_000)).program.host
        waits[stream] = (host.waits[1], host.call_ns[1])
    assert waits == {7: (Waits.STREAM, 0), 13: (Waits.NOTHING, 3_000)}


def test_a_free_waits_like_a_synchronization_and_an_allocation_does_not() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 40_000)
    trace.call("cudaMalloc", 4_000, 10_000)
    trace.call("cudaFree", 20_000, 30_000)
    host = decode(trace.timeline(0, 50_000)).program.host
    assert list(host.waits[1:3]) == [Waits.NOTHING, Waits.DEVICE]
    assert list(host.call_ns[1:3]) == [10_000, 5_000]


def test_a_pageable_copy_holds_the_host_and_a_pinned_one_does_not() -> None:
    waits = {}
    for kind in ("Pageable", "Pinned"):
        trace = TraceBuilder()
        copy = trace.call("cudaMemcpyAsync", 1_000, 30_000)
        name = f"Memcpy DtoH (Device -> {kind})"
        trace.kernel(4_000, 25_000, name=name, correlation=copy)
        host = decode(trace.timeline(0, 40_000)).program.host
        waits[kind] = (host.waits[0], host.call_ns[0])
    # What comes before the copy belongs to the copy, what comes after it to the call.
    assert waits == {"Pageable": (Waits.COPY, 2_000), "Pinned": (Waits.NOTHING, 30_000)}


def test_calls_nested_in_another_are_part_of_it() -> None:
    trace = TraceBuilder()
    trace.call("cudaLaunchKernelExC", 0, 10_000)
    inner = trace.call("cuLaunchKernelEx", 2_000, 4_000)
    trace.kernel(12_000, 3_000, correlation=inner)
    program = decode(trace.timeline(0, 20_000)).program
    assert list(program.host.call_ns) == [10_000, 0]
    assert list(program.device.call) == [0]


def test_autograds_thread_continues_the_thread_that_waits_for_it() -> None:
    trace = TraceBuilder()
    trace.launch(0, 4_000, 1_000, thread=MAIN, device=0)
    trace.launch(10_000, 14_000, 1_000, thread=AUTOGRAD, device=0)
    trace.launch(20_000, 24_000, 1_000, thread=AUTOGRAD, device=0)
    trace.launch(30_000, 34_000, 1_000, thread=MAIN, device=0)
    for at in (0, 11_000, 22_000, 31_000):
        trace.launch(at, at + 4_000, 1_000, thread=LOADER, device=1)
    decoded = decode(trace.timeline(0, 40_000))
    assert len(decoded.events.threads) == 2
    assert list(decoded.events.lane) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert list(decoded.program.host.python[:4]) == [1, 0, 0, 1]


def test_of_two_threads_on_a_device_the_silent_one_waits_for_autograd() -> None:
    trace = TraceBuilder()
    trace.launch(0, 4_000, 1_000, thread=MAIN)
    for at in (1_000, 12_000, 23_000, 34_000):
        trace.launch(at, at + 4_000, 1_000, thread=LOADER)
    for at in (10_000, 20_000, 30_000):
        trace.launch(at, at + 4_000, 1_000, thread=AUTOGRAD)
    trace.launch(40_000, 44_000, 1_000, thread=MAIN)
    assert list(decode(trace.timeline(0, 50_000)).events.lane) == [0] * 5 + [1] * 4


def test_labels_split_the_gaps_they_fall_into() -> None:
    trace = TraceBuilder()
    trace.launch(0, 4_000, 1_000)
    trace.launch(20_000, 24_000, 1_000)
    window = trace.timeline(0, 25_000)
    slept = decode(window, one_label(LabelKind.SLEEP, 5_000, 12_000)).program.host
    assert (slept.sleep_ns[1], slept.own_ns[1], slept.idle_first[1]) == (7_000, 10_000, True)
    late = decode(window, one_label(LabelKind.SLEEP, 14_000, 20_000)).program.host
    assert (late.sleep_ns[1], late.idle_first[1]) == (6_000, False)
    waited = decode(window, one_label(LabelKind.WAIT, 1_000, 30_000)).program.host
    assert (waited.wait_ns[1], waited.own_ns[1]) == (17_000, 0)
    named = decode(window, one_label(LabelKind.PYTHON, 4_000, 12_000)).program.host
    assert (named.named_ns[1], named.own_ns[1], named.named[1]) == (8_000, 17_000, 0)


def test_stalls_of_the_profiler_are_not_the_calls() -> None:
    trace = TraceBuilder()
    trace.launch(0, 4_000, 1_000)
    trace.call("cudaDeviceSynchronize", 10_000, 500_000)
    trace.stall(11_000, 480_000)
    host = decode(trace.timeline(0, 520_000)).program.host
    assert (host.stall_ns[1], host.call_ns[1]) == (480_000, 20_000)


def test_launches_before_a_full_queue_cost_what_others_do() -> None:
    trace = TraceBuilder()
    for at in range(1_400):
        # After 1,000 launches the queue is full: each launch then waits for a kernel to begin.
        start = 3_000 * min(at, 1_000) + 50_000 * max(at - 1_000, 0)
        trace.launch(start, 5_000 + 50_000 * at, 49_000, call_dur=2_000 if at < 1_000 else 45_000)
    program = decode(trace.timeline(0, 80_000_000)).program
    assert 900 <= program.launch_limit <= 1_000
    assert program.host.call_ns.max() == 2_000


def test_spacing_is_that_of_queued_kernels_or_the_usual_one() -> None:
    queued, idle = TraceBuilder(), TraceBuilder()
    for at in range(30):
        queued.launch(4_000 * at, 10_000 + 21_200 * at, 20_000)
        idle.launch(40_000 * at, 40_000 * at + 5_000, 20_000)
    assert set(decode(queued.timeline(0, 700_000)).program.device.spacing_ns[1:]) == {1_200}
    assert set(decode(idle.timeline(0, 1_300_000)).program.device.spacing_ns) == {
        TYPICAL_SPACING_NS
    }
    assert decode(idle.timeline(0, 1_300_000)).program.latency_ns == pytest.approx([2_000])


def test_copies_say_nothing_of_the_launch_latency() -> None:
    trace = TraceBuilder()
    for at in range(3):
        trace.launch(100_000 * at, 100_000 * at + 5_000, 20_000)
        for later in (40_000, 70_000):
            copy = trace.call("cudaMemcpyAsync", 100_000 * at + later, 20_000)
            name = "Memcpy DtoH (Device -> Pageable)"
            trace.kernel(100_000 * at + later + 2_000, 15_000, name=name, correlation=copy)
    assert list(decode(trace.timeline(0, 300_000)).program.latency_ns) == [2_000]


def test_work_found_on_a_device_is_carried_into_the_window() -> None:
    trace = TraceBuilder()
    trace.launch(0, 5_000, 60_000)
    trace.launch(22_000, 66_000, 10_000)
    program = decode(trace.timeline(20_000, 90_000)).program
    assert list(program.carried_ns) == [45_000]
    assert len(program.device) == 1


def test_kernels_without_a_launch_record_follow_the_one_before_them() -> None:
    trace = TraceBuilder()
    trace.launch(0, 4_000, 1_000)
    trace.kernel(6_000, 2_000, correlation=777)
    trace.launch(10_000, 14_000, 1_000)
    trace.launch(30_000, 34_000, 1_000)  # launched after the window: not of it
    program = decode(trace.timeline(0, 20_000)).program
    assert list(program.device.call) == [0, 0, 1]


def test_the_counting_thread_is_the_one_named_else_the_busiest() -> None:
    trace = TraceBuilder()
    trace.launch(0, 4_000, 1_000, thread=MAIN)
    trace.launch(5_000, 9_000, 1_000, thread=LOADER, device=1)
    trace.launch(9_000, 13_000, 1_000, thread=LOADER, device=1)
    timeline = trace.timeline(0, 20_000)
    assert decode(timeline).program.main == 1
    assert decode(timeline, main_thread=0).program.main == 0
