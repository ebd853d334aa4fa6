"""Small pytest projects whose items run in real workers."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_tokbudget.launching.launcher import ProcessLauncher
from pytest_tokbudget.records.launch import WorkerOutcome, WorkerResult, WorkerSpec

MODULE = "pytest_tokbudget.entry.worker_main"


@dataclass
class WorkerProject:
    """A directory with tests; ``session`` runs one item as the controller would."""

    path: Path
    scratch: Path
    live: list[str]

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def session(self, nodeid: str, *args: str, **changes: Any) -> WorkerOutcome:
        """Run ``nodeid`` in a worker whose controller was given ``args``."""
        fields: dict[str, Any] = {
            "nodeid": nodeid,
            "args": list(args),
            "argv": ["/usr/bin/pytest", *args],
            "cwd": str(self.path),
            "rootdir": str(self.path),
            "sys_path": list(sys.path),
            "result_path": str(self.scratch / "result.json"),
            "progress_path": str(self.scratch / "progress"),
            "session_index": 0,
            "job": "job",
        }
        launcher = ProcessLauncher(MODULE, on_output=self.live.append)
        return launcher.run(WorkerSpec(**{**fields, **changes}))

    def result(self, nodeid: str, *args: str, **changes: Any) -> WorkerResult:
        """The result of a session that has one."""
        outcome = self.session(nodeid, *args, **changes)
        assert outcome.result is not None, outcome.failure
        return outcome.result


@pytest.fixture
def worker_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerProject:
    """An empty project; installed plugins load only where a test names them with ``-p``."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in [name for name in os.environ if name.startswith(("COV_", "PYTEST_ADDOPTS"))]:
        monkeypatch.delenv(name)
    path, scratch = tmp_path / "project", tmp_path / "scratch"
    path.mkdir()
    scratch.mkdir()
    project = WorkerProject(path, scratch, live=[])
    project.write("pytest.ini", "[pytest]\n")
    return project
