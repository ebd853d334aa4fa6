"""What ``ledger_speed.py`` runs in the interpreter that has HolisticTraceAnalysis."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def _children() -> float:
    used = os.times()
    return used.children_user + used.children_system


def main() -> None:
    """Read the folder of traces named on the command line; print time, memory and idle."""
    from hta.trace_analysis import TraceAnalysis

    begun = time.perf_counter()
    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    read_at = time.perf_counter()
    temporal = analysis.get_temporal_breakdown(visualize=False)
    causes, _ = analysis.get_idle_time_breakdown(visualize=False)
    done = time.perf_counter()
    # Not ru_maxrss: it is inherited from the process that started this one.
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    print(
        f"  read {read_at - begun:.2f} s, analysed {done - read_at:.2f} s "
        f"(CPU {time.process_time():.2f} s with its workers' {_children():.2f} s), "
        f"peak {peak:,.0f} MB"
    )
    print("  temporal breakdown:")
    print(temporal.to_string(index=False))
    print("  idle time breakdown:")
    print(causes.to_string(index=False))


if __name__ == "__main__":
    main()
