"""Whatever kills whom, no process of a session is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from pytest_tokbudget.records.launch import WorkerSpec

from . import behaviours

SpecFor = Callable[[str], WorkerSpec]

CONTROLLER = """
import sys, msgspec
from pathlib import Path
from pytest_tokbudget.launching.launcher import ProcessLauncher
from pytest_tokbudget.records.launch import WorkerSpec
spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=WorkerSpec)
outcome = ProcessLauncher(sys.argv[2]).run(spec)
Path(sys.argv[1] + ".failure").write_text(outcome.failure)
"""


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Session:
    """A controller, its guard, worker and the worker's children, all running."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec_path = Path(spec.cwd) / "controller.json"
        self.spec_path.write_bytes(msgspec.json.encode(spec))
        self.controller = subprocess.Popen(
            [sys.executable, "-c", CONTROLLER, str(self.spec_path), behaviours.__name__],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(spec.sys_path)},
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes: dict[str, psutil.Process] = {}

    def wait_until_running(self, spec: WorkerSpec) -> None:
        pids = Path(spec.cwd) / "pids"
        end = time.monotonic() + 60
        while not pids.exists():
            assert time.monotonic() < end, "the worker never ran"
            assert self.controller.poll() is None, "the controller ended early"
            time.sleep(0.02)
        noted = json.loads(pids.read_text())
        for name in ("guard", "worker"):
            self.processes[name] = psutil.Process(noted[name])
        for name, pid in zip(("child", "daemon"), noted["children"]):
            self.processes[name] = psutil.Process(pid)

    def left_after(self, seconds: float, names: Collection[str] = ()) -> list[str]:
        """The names of the processes of the session, or of those named, that still run."""
        end = time.monotonic() + seconds
        asked = {name: self.processes[name] for name in names or self.processes}
        while True:
            left = [name for name, process in asked.items() if _runs(process)]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.02)

    def end(self) -> None:
        self.controller.kill()
        self.controller.wait()
        for process in self.processes.values():
            if process.is_running():
                process.kill()


@pytest.fixture(params=["wait_for_the_end"])
def session(request: pytest.FixtureRequest, spec_for: SpecFor) -> Iterator[Session]:
    spec = spec_for(request.param)
    running = Session(spec)
    try:
        running.wait_until_running(spec)
        yield running
    finally:
        running.end()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_controller_is_killed(session: Session, sent: signal.Signals) -> None:
    session.controller.send_signal(sent)

    assert session.left_after(5) == []
    assert session.controller.wait(5) == -sent


@pytest.mark.parametrize("session", ["ignore_the_end"], indirect=True)
def test_a_worker_that_ignores_sigterm(session: Session) -> None:
    session.controller.kill()

    assert session.left_after(5) == []


def test_the_whole_group_of_the_controller_is_killed(session: Session) -> None:
    os.killpg(session.controller.pid, signal.SIGKILL)

    assert session.left_after(5) == []


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_guard_is_killed(session: Session, sent: signal.Signals) -> None:
    session.processes["guard"].send_signal(sent)

    assert session.left_after(5) == []
    assert session.controller.wait(5) == 0
    failure = session.spec_path.with_suffix(".json.failure").read_text()
    assert "guard" in failure


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_the_worker_is_killed(session: Session, sent: signal.Signals) -> None:
    session.processes["worker"].send_signal(sent)

    assert session.left_after(5) == []
    assert session.controller.wait(5) == 0
    failure = session.spec_path.with_suffix(".json.failure").read_text()
    assert f"killed by {sent.name}" in failure


def test_controller_and_guard_are_killed_together(session: Session) -> None:
    """The kernel then kills the worker; nobody is left to walk its children."""
    session.processes["guard"].suspend()
    session.controller.kill()
    session.processes["guard"].kill()

    assert session.left_after(5, ("guard", "worker")) == []
