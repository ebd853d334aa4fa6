"""Records what the ledger and the causes are tested on: real runs with their unprofiled truth.

    python benchmarks/record_evidence.py --out DIR [--seconds 400] [--dry-run-cpu]
        [--one WORKLOAD] [--cuda-only] [--faults copy,queue] [--milliseconds 3]
    python benchmarks/record_evidence.py --compact FROM TO

Four workloads (a GPU-bound loop, a launch-bound loop, a threaded two-stage pipeline, the example
pipeline), each in a process of its own; each with the faults of ``evidence_faults``, one at a time.
First the truth (ABBA, nothing attached), then a timing pass of each fault, then its stacks with
nothing else attached, then its CUDA-only trace (100 steps, with stacks by py-spy where it is
installed), then one with CPU operators (30 steps).
Files are written after each of the two (``--cuda-only``: the first alone). ``--seconds`` bounds
the whole; what no longer fits is left out and named.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence_faults import FAULTS, MILLISECONDS, Chosen

WORKLOADS = ("gpu_bound", "launch_bound", "pipeline", "dflash")
COMPACT_FAULTS = ("none", "item", "cache")
COMPACT_STEPS = 12


def record_all(arguments: argparse.Namespace) -> int:
    """Record each workload in a fresh process; the number of those that failed."""
    failed = 0
    until = time.monotonic() + arguments.seconds
    for at, name in enumerate(WORKLOADS):
        share = (until - time.monotonic()) / (len(WORKLOADS) - at)
        command = [sys.executable, __file__, "--out", str(arguments.out), "--one", name]
        command += ["--seconds", f"{share:.0f}"]
        command += ["--faults", ",".join(arguments.faults)]
        command += ["--milliseconds", str(arguments.milliseconds)]
        command += ["--cuda-only"] if arguments.cuda_only else []
        command += ["--dry-run-cpu"] if arguments.dry_run_cpu else []
        print(f"== {name}: {share:.0f} s", flush=True)
        try:
            failed += subprocess.run(command, check=False, timeout=share + 45).returncode != 0
        except subprocess.TimeoutExpired:
            print(f"{name} did not end in time", flush=True)
            failed += 1
    return failed


def compact_all(source: Path, target: Path) -> None:
    """The small files that are committed: few faults, few steps, CUDA-only."""
    from benchmarks.evidence_files import compact

    for path in sorted(source.glob("*_cuda.npz")):
        compact(path, target / path.name, COMPACT_FAULTS, COMPACT_STEPS)
        print(f"{target / path.name}: {(target / path.name).stat().st_size:,} bytes")


def _faults(text: str) -> Sequence[str]:
    """The faults named in an option; argparse says which one is none."""
    names = text.split(",")
    for one in names:
        if one not in FAULTS[1:]:
            raise argparse.ArgumentTypeError(f"{one!r} is none of {', '.join(FAULTS[1:])}")
    return names


def main() -> None:
    """Record, or make recorded files small."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--one", choices=WORKLOADS)
    parser.add_argument("--faults", type=_faults, default=FAULTS[1:], metavar="NAME,…")
    parser.add_argument(
        "--milliseconds", type=float, default=MILLISECONDS, help="size of python, stream and sleep"
    )
    parser.add_argument("--cuda-only", action="store_true")
    parser.add_argument("--dry-run-cpu", action="store_true")
    parser.add_argument("--compact", type=Path, nargs=2, metavar=("FROM", "TO"))
    arguments = parser.parse_args()
    if arguments.compact:
        compact_all(*arguments.compact)
    elif arguments.out is None:
        parser.error("--out is required")
    elif arguments.one:
        from benchmarks.evidence_session import Session

        Session(
            arguments.one,
            arguments.out,
            arguments.seconds,
            arguments.dry_run_cpu,
            arguments.cuda_only,
            Chosen(arguments.faults, arguments.milliseconds),
        ).record()
    else:
        raise SystemExit(record_all(arguments))


if __name__ == "__main__":
    main()
