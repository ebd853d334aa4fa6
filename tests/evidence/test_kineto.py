from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from pytest_tokbudget.analysis.timeline import Window
from pytest_tokbudget.evidence.kineto import KinetoProbe, RawTrace, _explained
from pytest_tokbudget.records.base import Unavailable

torch = pytest.importorskip("torch")


@contextmanager
def everybody_stands() -> Iterator[Sequence[str]]:
    yield ()


@contextmanager
def one_runs_on() -> Iterator[Sequence[str]]:
    yield ("drafter-1",)


def test_a_trace_of_the_cpu_names_its_threads_and_operators() -> None:
    probe = KinetoProbe(("cpu",))
    assert probe.start() is None
    torch.ones(8).add(1)
    trace = probe.stop(everybody_stands, {threading.get_native_id(): "target"})
    assert isinstance(trace, RawTrace)
    begin, end = int(trace.rows[:, 6].min()), int((trace.rows[:, 6] + trace.rows[:, 7]).max())
    line = trace.timeline(Window(begin, end, 1))
    assert line.devices == ()
    assert line.ops is not None
    at = [line.names[name] for name in line.ops.name].index("aten::add")
    thread = line.threads[line.ops.thread[at]]
    assert (thread.native_id, thread.role) == (threading.get_native_id(), "target")
    assert thread.name == threading.current_thread().name
    assert (trace.rows[:, 2] == -1).all()
    assert line.ops.dur_ns[at] > 0


def test_a_second_profiler_is_refused_with_a_reason() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        refusal = KinetoProbe(("cpu",)).start()
    assert isinstance(refusal, Unavailable)
    assert "running already" in refusal.reason
    assert refusal.remedy


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_without_cuda_the_trace_is_unavailable() -> None:
    refusal = KinetoProbe().start()
    assert isinstance(refusal, Unavailable)
    assert "no CUDA device" in refusal.reason


def test_workers_that_do_not_stand_are_named_and_nothing_is_stopped() -> None:
    probe = KinetoProbe(("cpu",))
    assert probe.start() is None
    trace = probe.stop(one_runs_on)
    assert isinstance(trace, Unavailable)
    assert "drafter-1" in trace.reason
    assert isinstance(probe.stop(everybody_stands), RawTrace)


def test_stopping_what_was_not_started_is_unavailable() -> None:
    assert isinstance(KinetoProbe(("cpu",)).stop(everybody_stands), Unavailable)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "CUPTI is busy"),
        ("hardware busy", "CUPTI is busy"),
        ("Profiler is already enabled on this thread", "running already"),
        ("CUDA error: device-side assert\nmore", "the device failed"),
        ("something else", "the profiler failed: something else"),
    ],
)
def test_errors_are_explained(message: str, reason: str) -> None:
    assert reason in _explained(RuntimeError(message)).reason


def test_times_are_unix_time() -> None:
    import time

    probe = KinetoProbe(("cpu",))
    before = time.time_ns()
    assert probe.start() is None
    torch.ones(8).add(1)
    trace = probe.stop(everybody_stands)
    assert isinstance(trace, RawTrace)
    starts = trace.rows[:, 6]
    slack = 50_000_000
    assert before - slack < starts.min() <= starts.max() < time.time_ns() + slack
    assert trace.rows.dtype == np.int64
