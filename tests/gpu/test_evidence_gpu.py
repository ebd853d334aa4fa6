"""The probes and the ledger on a real device; run with ``-m gpu``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from pytest_tokbudget.analysis.causes import Cause
from pytest_tokbudget.analysis.counters import counters_by_step
from pytest_tokbudget.analysis.ledger import Ledger, build_ledger
from pytest_tokbudget.analysis.timeline import Timeline, Window
from pytest_tokbudget.evidence.allocator import AllocatorProbe
from pytest_tokbudget.evidence.kineto import LEAD_IN_STEPS, KinetoProbe, RawTrace
from pytest_tokbudget.evidence.telemetry import Telemetry
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.telemetry import MachineWatch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("default"),
]
CUDA: Any = torch.cuda
STEPS = 20


@contextmanager
def everybody_stands() -> Iterator[Sequence[str]]:
    yield ()


def traced(
    step: Callable[[], object], activities: tuple[str, ...] = ("cuda",), steps: int = STEPS
) -> Timeline:
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    probe = KinetoProbe(activities)
    refusal = probe.start()
    assert refusal is None, refusal
    for _ in range(LEAD_IN_STEPS):
        step()
    torch.cuda.synchronize()
    begun, ends = time.time_ns(), []
    for _ in range(steps):
        step()
        ends.append(time.time_ns())
    torch.cuda.synchronize()
    ended = time.time_ns()
    trace = probe.stop(everybody_stands)
    assert isinstance(trace, RawTrace), trace
    return trace.timeline(Window(begun, ended, steps, (*ends[:-1], ended)), devices=(0,))


def ledger_of(timeline: Timeline) -> Ledger:
    ledger = build_ledger(timeline)
    assert isinstance(ledger, Ledger), ledger
    (device,) = ledger.devices
    assert sum(row.ns for row in device.rows) == timeline.window.wall_ns
    assert ledger.completeness.matched_share >= 0.99
    return ledger


def training_step() -> Callable[[], None]:
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(8))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.ones(64, 512, device="cuda")

    def step() -> None:
        model(batch).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


@pytest.mark.parametrize("activities", [("cuda",), ("cpu", "cuda")])
def test_a_training_step_is_partitioned_and_every_launch_is_found(
    activities: tuple[str, ...],
) -> None:
    timeline = traced(training_step(), activities)
    ledger = ledger_of(timeline)
    assert 0 < ledger.device(0).busy_ns < timeline.window.wall_ns
    launches = counters_by_step(timeline)["kernel_launches"]
    assert len(set(launches.tolist())) == 1
    assert launches[0] > 30
    launching = {timeline.threads[at].name for at in timeline.host_calls.thread}
    assert threading.current_thread().name in launching
    assert any("pt_autograd" in name for name in launching), launching
    assert (timeline.ops is not None) == ("cpu" in activities)


def test_a_blocking_read_is_counted_and_copies_have_their_direction() -> None:
    step = training_step()
    host = torch.ones(1 << 20)
    value = torch.ones((), device="cuda")

    def reading() -> None:
        step()
        host.cuda()
        value.item()

    timeline = traced(reading)
    ledger_of(timeline)
    counts = counters_by_step(timeline)
    assert (counts["copies_htod_pageable"] == 1).all()
    assert (counts["syncs_stream"] >= 1).all()
    if "copy_bytes_htod_pageable" in counts:
        assert (counts["copy_bytes_htod_pageable"] == 4 << 20).all()


def test_churn_is_the_allocators() -> None:
    step = training_step()

    def churning() -> None:
        step()
        torch.cuda.empty_cache()

    probe = AllocatorProbe()
    assert probe.start() is None
    timeline = traced(churning)
    figures = probe.stop()
    assert isinstance(figures, list)
    assert (figures[0].device_frees or 0) >= STEPS
    assert ledger_of(timeline).device(0).ns(Cause.ALLOCATOR) > 0
    assert (counters_by_step(timeline)["device_frees"] >= 1).all()


def test_kernels_of_a_graph_share_one_launch() -> None:
    tensor = torch.ones(1 << 22, device="cuda")
    graph = CUDA.CUDAGraph()
    with CUDA.graph(graph):
        for _ in range(10):
            tensor.mul_(1.0001)
    timeline = traced(graph.replay)
    ledger = ledger_of(timeline)
    assert counters_by_step(timeline)["graph_launches"].tolist() == [1] * STEPS
    assert counters_by_step(timeline)["kernel_launches"].tolist() == [0] * STEPS
    assert ledger.device(0).ns(Cause.INSIDE_GRAPH) > 0


def test_two_streams_are_one_devices_time() -> None:
    side = CUDA.Stream()
    left, right = (torch.ones(2048, 2048, device="cuda") for _ in range(2))

    def both() -> None:
        left.mm(left)
        with CUDA.stream(side):
            right.mm(right)
        CUDA.current_stream().wait_stream(side)

    timeline = traced(both)
    assert len(set(timeline.device_events.stream.tolist())) == 2
    assert ledger_of(timeline).device(0).busy_ns <= int(timeline.device_events.dur_ns.sum())


def test_a_running_profiler_is_respected() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        refusal = KinetoProbe().start()
    assert isinstance(refusal, Unavailable)
    assert "running already" in refusal.reason


def test_the_device_is_watched_from_outside() -> None:
    telemetry = Telemetry(interval_ms=20)
    assert telemetry.start() is None
    step = training_step()
    for _ in range(50):
        step()
    torch.cuda.synchronize()
    watch = telemetry.stop()
    assert isinstance(watch, MachineWatch), watch
    device = watch.devices[0]
    assert device.sm_clock_mhz is not None, device.unavailable
    assert device.memory_used_bytes is not None, device.unavailable
    assert device.memory_used_bytes.max > 0
    assert device.samples == watch.samples >= 2
