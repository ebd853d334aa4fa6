"""Our own workflow and the two that users copy: well formed, closed, safe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CI = ROOT / ".github/workflows/ci.yml"
GATE = ROOT / "docs/workflows/tokbudget-gate.yml"
REFRESH = ROOT / "docs/workflows/tokbudget-refresh.yml"
ALL = (CI, GATE, REFRESH)
OPTION = r"--tokbudget[\w-]*"


def loaded(path: Path) -> dict[Any, Any]:
    tree: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tree


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in loaded(path)["jobs"].values():
        yield from job["steps"]


def scripts(path: Path) -> list[str]:
    return [step["run"] for step in steps(path) if "run" in step]


def script_named(path: Path, name: str) -> str:
    (script,) = [step["run"] for step in steps(path) if step.get("name") == name]
    return str(script)


@pytest.mark.parametrize("path", ALL, ids=lambda one: one.stem)
def test_jobs_are_bounded_and_permissions_are_the_least(path: Path) -> None:
    workflow = loaded(path)

    # YAML 1.1 reads the key "on" as true.
    assert workflow[True]
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 120
        assert job["runs-on"]
        assert job.get("needs", next(iter(workflow["jobs"]))) in workflow["jobs"]
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))


@pytest.mark.parametrize("path", ALL, ids=lambda one: one.stem)
def test_no_expression_is_part_of_a_script(path: Path) -> None:
    for script in scripts(path):
        assert "${{" not in script
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("path", [GATE, REFRESH], ids=lambda one: one.stem)
def test_the_evidence_is_always_kept_though_hidden(path: Path) -> None:
    (upload,) = [one for one in steps(path) if one.get("with", {}).get("path") == ".tokbudget/"]

    assert upload["if"] == "always()"
    assert upload["with"]["include-hidden-files"] is True


@pytest.mark.parametrize("path", [GATE, REFRESH], ids=lambda one: one.stem)
def test_only_options_that_exist_are_used(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help", "-p", "pytest_tokbudget.plugin"],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    options = set(re.findall(OPTION, done.stdout))

    used = set(re.findall(OPTION, "\n".join(scripts(path))))

    assert used
    assert used <= options


def test_the_measuring_machine_holds_no_token_that_writes() -> None:
    jobs = loaded(REFRESH)["jobs"]

    assert "permissions" not in jobs["measure"]
    assert jobs["measure"]["steps"][0]["with"] == {"persist-credentials": False}
    assert jobs["propose"]["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert loaded(REFRESH)[True]["workflow_dispatch"]["inputs"]["reason"]["required"] is True


@pytest.mark.parametrize(
    ("result", "status", "says", "code"),
    [
        ("success", "0", "passed", 0),
        ("failure", "75", "::warning title=Try again", 1),
        ("failure", "1", "::error title=Throughput", 1),
        ("failure", "5", "::error title=Nothing measured", 1),
        ("failure", "", "::error title=No verdict", 1),
        ("cancelled", "", "::error title=No verdict", 1),
        ("skipped", "", "::error title=Not measured", 1),
        ("success", "", "::error title=No verdict", 1),
        ("failure", "0", "::error title=No verdict", 1),
    ],
)
def test_the_required_check_passes_only_on_a_passed_measurement(
    result: str, status: str, says: str, code: int
) -> None:
    assert loaded(GATE)["jobs"]["tokbudget"]["if"] == "always()"

    done = subprocess.run(
        ["bash", "-e", "-c", script_named(GATE, "Verdict")],
        env={"PATH": os.environ["PATH"], "RESULT": result, "STATUS": status},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == code, done.stderr
    assert says in done.stdout


@pytest.mark.parametrize("status", [0, 1, 75])
def test_the_status_of_pytest_is_passed_on(tmp_path: Path, status: int) -> None:
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/arguments\nexit {status}\n')
    python.chmod(0o755)
    output = tmp_path / "output"

    done = subprocess.run(
        ["bash", "-e", "-c", script_named(GATE, "Measure and judge")],
        env={
            "PATH": os.environ["PATH"],
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_OUTPUT": str(output),
        },
        check=False,
    )

    assert done.returncode == status
    assert output.read_text() == f"status={status}\n"
    assert "--tokbudget" in (tmp_path / "arguments").read_text().splitlines()


def test_a_hostile_reason_stays_one_argument(tmp_path: Path) -> None:
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n')
    python.chmod(0o755)
    reason = f'"; touch {tmp_path}/owned; echo $(touch {tmp_path}/owned) `touch {tmp_path}/owned`'

    subprocess.run(
        ["bash", "-e", "-c", script_named(REFRESH, "Measure new baselines")],
        env={
            "PATH": os.environ["PATH"],
            "RUNNER_TEMP": str(tmp_path),
            "REASON": reason,
            "TESTS": "a or b",
        },
        check=True,
    )

    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[2:4] == [f"--tokbudget-refresh={reason}", "-k=a or b"]
    assert not (tmp_path / "owned").exists()
