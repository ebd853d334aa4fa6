"""What a started worker process runs: guard first, then pytest for one item.

Started by ``launching.launcher``; imports nothing heavy before the guard has forked.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

from ..launching.guard import leave_stacks, start_guarded
from ..launching.progress import RESULT_NS, ProgressBlock
from ..launching.spec_file import SessionFiles, take_spec
from ..records.launch import WorkerSpec
from .provenance import prepare


def main() -> int:
    """Take the spec, fork the guard, run pytest in the child, leave the result; return the status.

    Raises LaunchError when there is no spec.
    """
    spec = take_spec()
    progress = ProgressBlock(spec.progress_path)
    start_guarded(progress)
    leave_stacks(SessionFiles.of(spec).stacks)
    _flush_each_line()
    sys.argv[:] = spec.argv
    proof = prepare(spec)
    status = _run_pytest(spec, progress, proof)
    progress.slots[RESULT_NS] = time.monotonic_ns()
    return status


def _flush_each_line() -> None:
    """Output goes to a file here; under ``-s`` a person still wants to see it as it comes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _run_pytest(spec: WorkerSpec, progress: ProgressBlock, proof: Callable[[], list[str]]) -> int:
    import pytest

    from .worker import WorkerPlugin

    with SessionFiles.of(spec).terminal.open("w", encoding="utf-8") as terminal:
        plugin = WorkerPlugin(spec, progress, terminal, proof)
        status = int(pytest.main(list(spec.args), plugins=[plugin]))
        plugin.finish()
    return status
