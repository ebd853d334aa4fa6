"""Whatever ends the controller, no worker is left and nothing is half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from .conftest import Project

TEST = (
    "import os, time, pytest\n"
    "def step():\n"
    "    with open('pid', 'w') as file: file.write(str(os.getpid()))\n"
    "    os.rename('pid', 'measuring')\n"
    "    time.sleep(.01)\n"
    "    return 1\n"
    "@pytest.mark.tokbudget(steps=100000, warmup=1)\n"
    "def test_step(tokbudget): tokbudget(step)\n"
)


def _wait_until(condition: object, seconds: float) -> bool:
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_is_left(bare_project: Project, sent: signal.Signals) -> None:
    bare_project.write("test_it.py", TEST)
    where = bare_project.pytester.path
    controller = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--tokbudget-refresh", "why", "-p", "no:randomly"],
        cwd=where,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert _wait_until((where / "measuring").exists, 60)
        worker = psutil.Process(int((where / "measuring").read_text()))
        tree = psutil.Process(controller.pid).children(recursive=True)
        os.kill(controller.pid, sent)
        output, _ = controller.communicate(timeout=30)
        _, alive = psutil.wait_procs([*tree, worker], timeout=5)
        assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE], output
    finally:
        controller.kill()
        controller.wait()
    assert not Path(where / "baselines").exists() or not bare_project.baseline_files
    if sent is signal.SIGINT:
        assert controller.returncode == 2
        assert "no baseline was written" in output
