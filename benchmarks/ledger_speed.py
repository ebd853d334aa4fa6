"""Speed and memory of the ledger, next to HolisticTraceAnalysis on the same trace.

    python benchmarks/ledger_speed.py [--hta-python PATH] [--kernels N] [--hta-kernels N]

The trace: two devices, each driven by its own thread of one process and idle half the time; every
kernel has its launch and one further host record. Ours starts from the event arrays, as the probe
hands them over; HolisticTraceAnalysis from a Chrome trace file, which is how it is used, at a
smaller size. ``--hta-python`` names an interpreter that has it
(``pip install HolisticTraceAnalysis==0.5.0``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pytest_tokbudget.analysis.causes import BUSY
from pytest_tokbudget.analysis.ledger import build_ledger
from pytest_tokbudget.analysis.timeline import Timeline, Window
from pytest_tokbudget.analysis.trace_rows import COLUMNS, KnownThread, timeline_from_rows
from pytest_tokbudget.records.base import Unavailable

KERNEL_NS = 6_000
PERIOD_NS = 12_000
LATENCY_NS = 2_100
BASE_NS = 1_796_088_000_000_000_000
NAMES = ("cudaLaunchKernel", "cudaMalloc", "cudaStreamSynchronize", "gemm")
_HTA = Path(__file__).with_name("ledger_speed_hta.py")


def synthetic_rows(kernels: int) -> np.ndarray:
    """Rows of ``kernels`` kernels on two devices, each 50 % idle, the second half a period late
    (so that their union is always busy)."""
    half = kernels // 2
    rng = np.random.default_rng(7)
    parts = []
    for device in (0, 1):
        start = BASE_NS + np.arange(half) * PERIOD_NS + device * KERNEL_NS
        correlation = 1 + 2 * np.arange(half) + device * 2 * half
        kernel = np.zeros((half, len(COLUMNS)), np.int64)
        kernel[:, 1] = 3
        kernel[:, 3], kernel[:, 4], kernel[:, 5] = 1, device, 7
        kernel[:, 6], kernel[:, 7], kernel[:, 8] = start, KERNEL_NS, correlation
        launch = np.zeros_like(kernel)
        launch[:, 4], launch[:, 5] = 100, 101 + device
        launch[:, 7] = rng.integers(2_000, 3_500, half)
        launch[:, 6] = start - LATENCY_NS - launch[:, 7]
        launch[:, 8] = correlation
        other = launch.copy()
        other[:, 1] = rng.integers(1, 3, half)
        other[:, 7] = rng.integers(200, 2_000, half)
        other[:, 6] = launch[:, 6] - 100 - other[:, 7]
        other[:, 8] = correlation + 1
        parts += [kernel, launch, other]
    rows = np.concatenate(parts)
    rows[:, 2] = -1
    return rows


def timeline(rows: np.ndarray, kernels: int) -> Timeline:
    """The timeline of ``synthetic_rows``: whole periods only, so both devices are 50 % idle."""
    half = kernels // 2
    window = Window(BASE_NS + PERIOD_NS, BASE_NS + half * PERIOD_NS, 100)
    threads = [KnownThread("MainThread", 0, 101), KnownThread("drafter", 0, 102)]
    return timeline_from_rows(rows, NAMES, threads, window)


def chrome_trace(rows: np.ndarray) -> dict[str, object]:
    """The same rows as the profiler's own file format."""
    events: list[dict[str, object]] = []
    for row in rows.tolist():
        _, name, _, on_device, device, resource_id, start, dur, correlation, *_ = row
        event: dict[str, object] = {
            "ph": "X",
            "cat": "kernel" if on_device else "cuda_runtime",
            "name": NAMES[name],
            "pid": device,
            "tid": resource_id,
            "ts": (start - BASE_NS) / 1e3,
            "dur": dur / 1e3,
            "args": {"correlation": correlation, "External id": correlation},
        }
        if on_device:
            event["args"] = {
                "correlation": correlation,
                "External id": correlation,
                "stream": resource_id,
                "device": device,
                "context": 1,
            }
        events.append(event)
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "synthetic"}, {"id": 1, "name": "synthetic"}],
        "distributedInfo": {"rank": 0, "world_size": 1},
        "traceEvents": events,
    }


def measure_ours(kernels: int) -> None:
    """Print time, peak memory and idle of our ledger."""
    rows = synthetic_rows(kernels)
    begun = time.perf_counter(), time.process_time()
    line = timeline(rows, kernels)
    sorted_at = time.perf_counter(), time.process_time()
    ledger = build_ledger(line)
    done = time.perf_counter(), time.process_time()
    if isinstance(ledger, Unavailable):
        raise SystemExit(f"no ledger: {ledger}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"pytest-tokbudget: {len(line.device_events):,} kernels, {len(line.host_calls):,} host "
        f"records, 2 devices: rows to timeline {_took(begun, sorted_at)}, ledger "
        f"{_took(sorted_at, done)}, peak {peak:,.0f} MB (rows {rows.nbytes / 2**20:,.0f} MB)"
    )
    for device in ledger.devices:
        busy = sum(row.ns for row in device.rows if row.cause in BUSY)
        idle = 100 * (1 - busy / ledger.window.wall_ns)
        top = ", ".join(
            f"{row.title} {100 * row.ns / ledger.window.wall_ns:.1f} %" for row in device.rows[:5]
        )
        print(f"  cuda:{device.device}: idle {idle:.1f} %: {top}")


def _took(begun: tuple[float, float], ended: tuple[float, float]) -> str:
    """Wall and CPU time, which differ on a busy machine."""
    return f"{ended[0] - begun[0]:.2f} s (CPU {ended[1] - begun[1]:.2f} s)"


def measure_hta(kernels: int, python: Path) -> None:
    """Write the trace to a file and let HolisticTraceAnalysis read it in its own interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json.gz"
        with gzip.open(path, "wt", compresslevel=1) as file:
            json.dump(chrome_trace(synthetic_rows(kernels)), file)
        size = path.stat().st_size / 2**20
        print(f"HolisticTraceAnalysis: {kernels:,} kernels in {size:.0f} MB of Chrome trace")
        subprocess.run([str(python), str(_HTA), folder], check=True)


def main() -> None:
    """Measure ours, and theirs where an interpreter is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--hta-kernels", type=int, default=200_000)
    parser.add_argument("--hta-python", type=Path)
    arguments = parser.parse_args()
    measure_ours(arguments.kernels)
    sys.stdout.flush()
    if arguments.hta_python is None:
        print("HolisticTraceAnalysis: not measured (--hta-python names no interpreter)")
    else:
        measure_hta(arguments.hta_kernels, arguments.hta_python)


if __name__ == "__main__":
    main()
