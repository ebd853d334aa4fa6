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


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_no_checkout_of_a_ref_is_left(
    bare_project: Project, tmp_path_factory: pytest.TempPathFactory, sent: signal.Signals
) -> None:
    bare_project.write("test_it.py", TEST)
    where, scratch = bare_project.pytester.path, tmp_path_factory.mktemp("scratch")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for args in (["init", "-q"], ["add", "test_it.py"], ["commit", "-q", "-m", "a commit"]):
        subprocess.run([*git, *args], cwd=where, check=True)
    controller = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--tokbudget-against", "HEAD", "-p", "no:randomly"],
        cwd=where,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    try:
        assert _wait_until((where / "measuring").exists, 60)
        assert list(scratch.glob("tokbudget-ref-*"))
        tree = psutil.Process(controller.pid).children(recursive=True)
        os.kill(controller.pid, sent)
        output, _ = controller.communicate(timeout=30)
        _, alive = psutil.wait_procs(tree, timeout=5)
    finally:
        controller.kill()
        controller.wait()
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE], output
    assert controller.returncode == (2 if sent is signal.SIGINT else -sent), output
    assert not list(scratch.glob("tokbudget-*")), output
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=where, check=True, capture_output=True, text=True
    )
    assert "tokbudget-ref-" not in listed.stdout
    assert ("Terminated: SIGTERM" in output) == (sent is signal.SIGTERM), output
