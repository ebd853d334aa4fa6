"""``tokbudget calibrate``: sessions of unchanged code, and what gate their noise allows."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import LaunchError, UsageError

if TYPE_CHECKING:
    from .records.run import RunRecord

JOBS = 2
SESSIONS = 5


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options of ``calibrate``; what it does not know is pytest's (``pytest_args``)."""
    command.add_argument(
        "--jobs", type=int, default=JOBS, metavar="J", help=f"runs of pytest (default: {JOBS})"
    )
    command.add_argument(
        "--sessions",
        type=int,
        default=SESSIONS,
        metavar="N",
        help=f"fresh sessions of each test in each job (default: {SESSIONS})",
    )
    command.add_argument(
        "--report",
        type=Path,
        default=Path(".tokbudget"),
        metavar="DIR",
        help="run records go to a new directory below DIR/calibration (default: .tokbudget)",
    )


def calibration(options: argparse.Namespace, *, width: int, color: bool, encoding: str) -> str:
    """Measure, and return the text of ``tokbudget calibrate``.

    pytest's own output goes to stderr. Raises UsageError for wrong numbers, LaunchError where
    pytest failed or too little was measured.
    """
    from .analysis.calibration import Calibration, calibrate, stepping_s
    from .reporting.calibration_text import render_calibration

    _check(options.jobs, options.sessions)
    report = options.report / "calibration" / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    elapsed_s = [
        _job(number, options.jobs, options.sessions, report, options.pytest_args)
        for number in range(1, options.jobs + 1)
    ]
    runs = _runs_in(report)
    # What is not stepping (start-up, imports, building) is shared by all sessions alike.
    other_s = max(0.0, sum(elapsed_s) - sum(map(stepping_s, runs))) / len(runs)
    sections = []
    for own in _by_workload(runs, options.jobs * options.sessions):
        session_s = other_s + sum(map(stepping_s, own)) / len(own)
        found = calibrate(own, session_s)
        if not isinstance(found, Calibration):
            raise LaunchError(f"{own[0].workload.nodeid}: {found}; measure more (--sessions)")
        sections.append(render_calibration(found, width=width, color=color, encoding=encoding))
    return "\n\n".join([*sections, f"run records in {report}"])


def _check(jobs: int, sessions: int) -> None:
    from .analysis.calibration import FEWEST_SESSIONS

    for name, value, least in (("--jobs", jobs, 1), ("--sessions", sessions, FEWEST_SESSIONS)):
        if value < least:
            raise UsageError(f"{name} {value}: expected at least {least}")


def _job(number: int, jobs: int, sessions: int, report: Path, args: Sequence[str]) -> float:
    """Run pytest once; return the seconds it took."""
    sys.stderr.write(f"tokbudget: job {number} of {jobs}\n")
    sys.stderr.flush()
    command = [sys.executable, "-m", "pytest", *args]
    command += ["--tokbudget-measure", str(sessions), "--tokbudget-evidence", "never"]
    command += ["--tokbudget-report", str(report)]
    began = time.monotonic()
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise LaunchError(
            f"job {number}: pytest ended with status {done.returncode} (see above); a calibration "
            "needs every session: name tests that measure and pass"
        )
    return time.monotonic() - began


def _runs_in(report: Path) -> list[RunRecord]:
    from .storing.artifacts import ReportDirectory, load_run_record

    return [load_run_record(path) for path in ReportDirectory(report).records()]


def _by_workload(runs: Sequence[RunRecord], sessions: int) -> list[list[RunRecord]]:
    """Return the runs of each workload; raises LaunchError where one has not ``sessions``."""
    from .storing.artifacts import MOST_RUN_RECORDS

    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.workload.identity, []).append(run)
    for identity, own in found.items():
        if len(own) != sessions:
            raise LaunchError(
                f"{identity}: expected {sessions} run records, found {len(own)}; at most "
                f"{MOST_RUN_RECORDS} of all tests are kept: calibrate fewer tests at a time"
            )
    return list(found.values())
