"""A user's project in a directory of its own, run as a user would: in a fresh process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

STEP = """
import os, time
from pytest_tokbudget.measuring.clock import SystemClock

# The worker's clock is a hand-driven one, so that no load of the machine changes a verdict.
now_ns = time.monotonic_ns()
SystemClock.monotonic_ns = staticmethod(lambda: now_ns)

def step():
    global now_ns
    now_ns += int(4_000_000 * float(os.environ.get("SLOWER", "1")))
    return 1024
"""

TEST = """
from steps import step
import pytest
@pytest.mark.tokbudget(steps=25, warmup=2, tolerance="30%")
def test_step(tokbudget):
    tokbudget(step)
"""


MEASURED: dict[str, dict[str, str]] = {}
"""Baselines by the project that they were measured in; each test process has its own."""


@dataclass
class Project:
    """A project whose step takes 4 ms of a hand-driven clock; ``SLOWER=3`` makes it 12."""

    pytester: pytest.Pytester
    monkeypatch: pytest.MonkeyPatch
    autoload: bool = False
    """Whether other people's plugins load too; they take longer than a session."""
    evidence: str = "never"
    """Evidence takes five seconds and more a test, and has tests of its own."""

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *args: str, slower: float = 1, **env: str) -> pytest.RunResult:
        """Run pytest with ``args`` in a process of its own."""
        args = ("-o", f"tokbudget_evidence={self.evidence}", *args)
        with self.monkeypatch.context() as patch:
            patch.setenv("SLOWER", str(slower))
            for name, value in env.items():
                patch.setenv(name, value)
            if self.autoload:
                return self.pytester.runpytest_subprocess("-p", "no:randomly", *args)
            patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            return self.pytester.runpytest_subprocess("-p", "pytest_tokbudget.plugin", *args)

    def refresh(self, reason: str = "first") -> None:
        """Store a baseline from three sessions."""
        result = self.run("--tokbudget-refresh", reason, "--tokbudget-sessions", "3")
        assert result.ret == 0, result.stdout.str() + result.stderr.str()

    def have_baseline(self) -> None:
        """Have a baseline. The same project gets the files of its first refresh again."""
        root = self.pytester.path
        files = {str(one.relative_to(root)): one.read_text() for one in root.rglob("*.py")}
        files |= {one.name: one.read_text() for one in root.glob("*.ini")}
        key = repr((sorted(files.items()), self.evidence))
        if key not in MEASURED:
            self.refresh()
            MEASURED[key] = {
                str(one.relative_to(root)): one.read_text() for one in self.baseline_files
            }
        for name, text in MEASURED[key].items():
            self.write(name, text)

    @property
    def run_json(self) -> dict[str, Any]:
        """The last run.json."""
        text = (self.pytester.path / ".tokbudget" / "run.json").read_text()
        data: dict[str, Any] = json.loads(text)
        return data

    @property
    def only_test(self) -> dict[str, Any]:
        """The only test of the last run.json."""
        (test,) = self.run_json["tests"]
        found: dict[str, Any] = test
        return found

    @property
    def baseline_files(self) -> list[Path]:
        """Every stored baseline."""
        return sorted((self.pytester.path / "baselines").rglob("*.json"))

    @property
    def baseline(self) -> dict[str, Any]:
        """The only stored baseline."""
        (path,) = self.baseline_files
        data: dict[str, Any] = json.loads(path.read_text())
        return data


@pytest.fixture
def bare_project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project without tests, outside CI."""
    for name in ("CI", "TOKBUDGET_MACHINE", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith(("COV_", "PYTEST_XDIST"))]:
        monkeypatch.delenv(name)
    project = Project(pytester, monkeypatch)
    project.write("steps.py", STEP)
    project.write("pytest.ini", "[pytest]\npythonpath = .\n")
    return project


@pytest.fixture
def among_plugins(bare_project: Project) -> Project:
    """A project without tests where all installed plugins load."""
    bare_project.autoload = True
    return bare_project


@pytest.fixture
def project(bare_project: Project) -> Project:
    """A project with one measured test."""
    bare_project.write("test_it.py", TEST)
    return bare_project


@pytest.fixture
def ini(bare_project: Project) -> Callable[[str], None]:
    """Append lines to the project's ini file."""

    def add(lines: str) -> None:
        path = bare_project.pytester.path / "pytest.ini"
        path.write_text(path.read_text() + lines + "\n")

    return add
