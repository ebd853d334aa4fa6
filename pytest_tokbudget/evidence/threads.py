"""Thread clocks of this process, read by another one; joined with the threads' names and roles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest_tokbudget
from pytest_tokbudget.analysis.trace_rows import KnownThread
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.cpu import CoreUse, ThreadClock, ThreadClocks

from .host import usable_cores
from .thread_sampler import Document
from .thread_table import known_threads, merged

INTERVAL_MS = 100.0
ENDS_WITHIN_S = 20.0
OUR_THREADS = "tokbudget-"
_MODULE = "pytest_tokbudget.evidence.thread_sampler"
_POOLS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
)


class ThreadClockReader:
    """``start``, then ``stop``, then ``record``, which may wait until the workload has ended."""

    def __init__(self, interval_ms: float = INTERVAL_MS) -> None:
        self._interval_ms = interval_ms
        self._process: subprocess.Popen[str] | None = None
        self._known: list[KnownThread] = []
        self._output = ""
        self._failed: Unavailable | None = None

    def start(self) -> None:
        """Start the process that reads; what goes wrong is told by ``record``."""
        self._known = known_threads()
        command = [sys.executable, "-m", _MODULE, "--pid", str(os.getpid())]
        command += ["--interval-ms", str(self._interval_ms)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": _python_path()},
            )
        except OSError as error:
            self._failed = Unavailable(f"the threads' clocks cannot be read: {error}")

    def stop(self) -> None:
        """End it and take what it read."""
        self._known = merged(self._known, known_threads())
        if self._process is None:
            return
        try:
            self._output, said = self._process.communicate(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._output, said = self._process.communicate()
        if self._process.returncode != 0:
            last = said.strip().rsplit("\n", 1)[-1] or f"status {self._process.returncode}"
            self._failed = Unavailable(f"the process that reads the threads' clocks died: {last}")

    def record(self, roles: Mapping[int, str | None]) -> ThreadClocks | Unavailable:
        """What was read; ``roles`` maps native ids to what their workers declared."""
        if self._failed is not None:
            return self._failed
        if not self._output:
            return Unavailable("the threads' clocks were not read")
        names = {one.native_id: one.name for one in self._known}
        document: Document = json.loads(self._output)
        clocks = [_clock(row, names, roles) for row in document["threads"]]
        theirs = [one for one in clocks if not one.name.startswith(OUR_THREADS)]
        if not theirs:
            return Unavailable("no thread lived long enough for its clock to be read")
        first = min(one.times_ns[0] for one in theirs)
        last = max(one.times_ns[-1] for one in theirs)
        return ThreadClocks(
            threads=theirs,
            usable_cores=usable_cores(),
            seconds=(last - first) / 1e9,
            pool_settings=pool_settings(os.environ),
            cores=None if document["cores"] is None else CoreUse(**document["cores"]),
        )


def _clock(
    row: dict[str, Any], names: Mapping[int, str], roles: Mapping[int, str | None]
) -> ThreadClock:
    native = row["native_id"]
    if row["is_process"]:
        return ThreadClock(**row)
    return ThreadClock(
        **row | {"name": names.get(native) or row["name"], "role": roles.get(native)}
    )


def pool_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Sizes of thread pools: what the environment sets, and what torch uses if it is loaded."""
    settings = {name: environment[name] for name in _POOLS if name in environment}
    torch = sys.modules.get("torch")
    if torch is not None:
        settings["torch.get_num_threads()"] = str(torch.get_num_threads())
        settings["torch.get_num_interop_threads()"] = str(torch.get_num_interop_threads())
    return settings


def _python_path() -> str:
    """So that the child finds this very package, however this process found it."""
    here = str(Path(pytest_tokbudget.__file__).parents[1])
    inherited = os.environ.get("PYTHONPATH")
    return here if not inherited else os.pathsep.join((here, inherited))
