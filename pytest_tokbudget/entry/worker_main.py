"""What a started worker process runs: guard first, then pytest for one item.

Started by ``launching.launcher``; imports nothing heavy before the guard has forked.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from pathlib import Path

from ..launching.guard import start_guarded
from ..launching.progress import RESULT_NS, ProgressBlock
from ..launching.spec_file import SessionFiles, take_spec
from ..records.launch import WorkerSpec


def main() -> int:
    """Take the spec, fork the guard, run pytest in the child, leave the result; return the status.

    Raises LaunchError when there is no spec.
    """
    spec = take_spec()
    progress = ProgressBlock(spec.progress_path)
    start_guarded(progress)
    _leave_stacks(SessionFiles.of(spec).stacks)
    sys.argv[:] = spec.argv
    status = _run_pytest(spec, progress)
    progress.slots[RESULT_NS] = time.monotonic_ns()
    return status


def _leave_stacks(path: Path) -> None:
    """Have a fatal signal write the stacks of all threads, with the GIL held or not."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    faulthandler.enable(file=descriptor, all_threads=True)


def _run_pytest(spec: WorkerSpec, progress: ProgressBlock) -> int:
    import pytest

    from .worker import WorkerPlugin

    with SessionFiles.of(spec).terminal.open("w", encoding="utf-8") as terminal:
        plugin = WorkerPlugin(spec, progress, terminal)
        status = int(pytest.main(list(spec.args), plugins=[plugin]))
        plugin.finish(status)
    return status
