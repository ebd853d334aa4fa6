"""The stacks of a recorded workload while nothing but their sampler is attached, as a gate takes
them: hot frames and what each costs its threads."""

from __future__ import annotations

import time
from bisect import bisect_right
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pytest_tokbudget.analysis.cpu_summary import summarize_cpu
from pytest_tokbudget.evidence.cpu import CpuEvidence
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.records.evidence import Evidence

ROOT = str(Path(__file__).resolve().parents[1])


class Workload(Protocol):
    """What is sampled."""

    recorder: Recorder

    def run(self, steps: int) -> None:
        """Make ``steps`` steps."""
        ...


def sample(workload: Workload, seconds: float) -> dict[str, Any]:
    """Run for ``seconds`` under the CPU evidence; ``Evidence`` as plain data."""
    evidence = CpuEvidence()
    evidence.start()
    begun_ns, until = time.monotonic_ns(), time.monotonic() + seconds
    while time.monotonic() < until:
        workload.run(2)
    ended_ns = time.monotonic_ns()
    evidence.stop()
    marks = workload.recorder.mark_series("real")
    record = evidence.record(marks)
    window = (begun_ns, ended_ns)
    queues, spans = workload.recorder.queue_series(), workload.recorder.span_series()
    summary = summarize_cpu(record, queues, marks, window, ROOT, spans)
    counting = [one.times_ns for one in marks if one.counts]
    steps = sum(bisect_right(one, ended_ns) - bisect_right(one, begun_ns) for one in counting)
    seconds_seen = 0.0 if summary.tables is None else summary.tables.seconds
    sampled_steps = steps * seconds_seen * 1e9 / (ended_ns - begun_ns)
    found = Evidence(
        hot_frames=summary.hot_frames,
        frames_ms=[1e3 * cost_s / sampled_steps for cost_s in summary.costs_s],
        threads=summary.threads,
        sampling=summary.sampling,
        unavailable=summary.unavailable,
    )
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain | {"ms_per_step": (ended_ns - begun_ns) / 1e6 / max(steps, 1)}
