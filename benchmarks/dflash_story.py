"""What the CPU evidence says of the DFlash example when its code is worse than it could be.

    python -m benchmarks.dflash_story [--seconds 5] ["simulated post=sync" …]

Without arguments the whole story: packing on the critical path, threads that spin, a heap full of
garbage, a Python loop over tokens, a log that is forced to the disk each step. From evidence alone:
nothing here knows what the knobs do.
"""

from __future__ import annotations

import argparse
import sys
import time
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
WARM_UP_STEPS = 30


def observe(size: str, knobs: str, seconds: float) -> CpuSummary:
    """Run the example for ``seconds`` under the CPU evidence and summarize it."""
    sys.path.insert(0, str(ROOT / "examples"))
    from dflash.config import named_size
    from dflash.knobs import parse_knobs
    from dflash.pipeline import DFlashPipeline

    recorder, evidence = Recorder(SystemClock()), CpuEvidence()
    with DFlashPipeline(named_size(size), parse_knobs(knobs), recorder) as pipeline:
        pipeline.wait_for(WARM_UP_STEPS)
        evidence.start()
        time.sleep(seconds)
        evidence.stop()
    marks = recorder.mark_series("real")
    record = evidence.record(marks)
    window = (record.start_ns, record.end_ns)
    return summarize_cpu(record, recorder.queue_series(), marks, window, str(ROOT))


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
    parser.add_argument("cases", nargs="*", default=list(STORY))
    options = parser.parse_args()
    for case in options.cases:
        size, _, knobs = case.partition(" ")
        print(f"{told(case, observe(size, knobs, options.seconds))}\n", flush=True)


if __name__ == "__main__":
    main()
