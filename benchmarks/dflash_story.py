"""What the CPU evidence says of the DFlash example when its code is worse than it could be.

    python -m benchmarks.dflash_story [--seconds 5] [--device] ["simulated post=sync" …]

Without arguments the whole story: packing on the critical path, threads that spin, a heap full of
garbage, a Python loop over tokens, a log that is forced to the disk each step; ``--device`` tells
it on CUDA devices. From evidence alone: nothing here knows what the knobs do. ``size:1+3`` deals
the size out to one target and three drafters.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_tokbudget.analysis.cpu_summary import CpuSummary, summarize_cpu
from pytest_tokbudget.evidence.cpu import CpuEvidence
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.records.result import TestResult
from pytest_tokbudget.reporting.terminal import render

ROOT = Path(__file__).parents[1]
STORY = (
    "simulated post=sync",
    "simulated spin=2",
    "simulated gc=heavy",
    "cpu docids=python_loop",
    "simulated log_every=1",
)
DEVICE_STORY = (
    "h200:1+3 post=sync",
    "h200 spin=2",
    "h200 gc=heavy",
    "h200 docids=python_loop",
    "h200 log_every=1",
)
"""Two targets beside one drafter keep the queue full on one device, whatever they do: there the
packing is told with more drafters than targets."""
WARM_UP_STEPS = 30
WARM_UP_S = 25.0
"""Threads that spin make a step of many launches take seconds."""


def observe(size: str, knobs: str, seconds: float) -> CpuSummary:
    """Run the example for ``seconds`` under the CPU evidence and summarize it."""
    sys.path.insert(0, str(ROOT / "examples"))
    from dflash.config import named_size
    from dflash.knobs import parse_knobs
    from dflash.pipeline import DFlashPipeline

    name, _, layout = size.partition(":")
    dealt = named_size(name)
    if layout:
        targets, drafters = map(int, layout.split("+"))
        dealt = replace(dealt, targets=targets, drafters=drafters)
    recorder, evidence = Recorder(SystemClock()), CpuEvidence()
    with DFlashPipeline(dealt, parse_knobs(knobs), recorder) as pipeline:
        with suppress(TimeoutError):
            pipeline.wait_for(WARM_UP_STEPS, WARM_UP_S)
        evidence.start()
        time.sleep(seconds)
        evidence.stop()
    marks = recorder.mark_series("real")
    record = evidence.record(marks)
    window = (record.start_ns, record.end_ns)
    queues, spans = recorder.queue_series(), recorder.span_series()
    return summarize_cpu(record, queues, marks, window, str(ROOT), spans)


def told(case: str, summary: CpuSummary) -> str:
    """Return ``summary`` as the section of a test that failed shows it."""
    result = TestResult(
        nodeid=case,
        outcome="FAILED",
        reason="From evidence alone.",
        findings=[],
        sentences=summary.sentences,
        hot_frames=summary.hot_frames,
        threads=summary.threads,
        sampling=summary.sampling,
        unavailable=summary.unavailable,
    )
    return render(result, None)


def main() -> None:
    """Print what is said of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--device", action="store_true")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    for case in options.cases or (DEVICE_STORY if options.device else STORY):
        size, _, knobs = case.partition(" ")
        print(f"{told(case, observe(size, knobs, options.seconds))}\n", flush=True)


if __name__ == "__main__":
    main()
