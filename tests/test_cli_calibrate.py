"""``tokbudget calibrate``, run as a user would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .plugin.conftest import STEP, TEST


def calibrate(path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    program = "from pytest_tokbudget.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", program, "calibrate", *args]
    return subprocess.run(command, cwd=path, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_tokbudget.plugin")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (tmp_path / "steps.py").write_text(STEP)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tmp_path / "test_it.py").write_text(TEST)
    return tmp_path


def test_sessions_are_measured_and_told(project: Path) -> None:
    done = calibrate(project, "test_it.py", "--jobs", "1", "--sessions", "3")
    assert done.returncode == 0, done.stderr
    assert "CALIBRATION  test_it.py::test_step" in done.stdout
    assert "3 sessions in 1 job" in done.stdout
    assert "of 30 % holds from a first baseline and 1 session on" in done.stdout
    assert "1 passed" in done.stderr
    records = list(project.glob(".tokbudget/calibration/*/runs/*.json"))
    assert len(records) == 3
    (job,) = {json.loads(one.read_text()).get("job", "") for one in records}
    assert job, "sessions of one invocation bear its name"
    assert not (project / "baselines").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--sessions", "2"), "--sessions 2: expected at least 3"),
        (("--jobs", "0"), "--jobs 0: expected at least 1"),
        (("nowhere.py",), "job 1: pytest ended with status 4 (see above)"),
    ],
)
def test_what_cannot_be_calibrated_is_told(project: Path, args: tuple[str, ...], said: str) -> None:
    done = calibrate(project, *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
