"""The whole gate on a real device, as a user runs it: evidence in run.json and in the baseline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

PROJECT = """
import json
import os
import time
from pathlib import Path

import pytest
import torch

@pytest.mark.tokbudget(steps=60, tolerance="5%", sessions="2:4")
def test_train_step(tokbudget):
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(16))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.ones(2048, 2048, device="cuda")

    def churn():
        if os.environ.get("CHURN"):
            torch.cuda.empty_cache()

    def step():
        loss = model(x).square().mean()
        churn()
        loss.backward()
        churn()
        optimizer.step()
        optimizer.zero_grad()
        churn()
        return 2048

    tokbudget(step)


def pack_documents():
    value = 1
    for _ in range(60_000):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return value


@pytest.mark.tokbudget(steps=200, tolerance="50%", sessions="1:1")
def test_host_step(tokbudget):
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(32))).cuda()
    x = torch.ones(64, 256, device="cuda")
    packing_ns = []

    def step():
        model(x).square().mean().backward()
        torch.cuda.synchronize()
        if os.environ.get("PACK"):
            begun = time.perf_counter_ns()
            pack_documents()
            packing_ns.append(time.perf_counter_ns() - begun)
        return 64

    tokbudget(step)
    Path("packing_ms").write_text(json.dumps([one / 1e6 for one in packing_ns]))
"""


def run(project: Path, *args: str, **environment: str) -> tuple[int, str, dict[str, Any]]:
    """Run pytest on the project; its status, what it printed, and the tests of run.json."""
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_tokbudget.plugin", *args],
        cwd=project,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    tests = json.loads((project / ".tokbudget" / "run.json").read_text())["tests"]
    by_name = {one["nodeid"].rpartition("::")[2]: one for one in tests}
    return found.returncode, found.stdout + found.stderr, by_name


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two tests and their baselines."""
    path = tmp_path_factory.mktemp("gate")
    (path / "test_step.py").write_text(PROJECT)
    (path / "pytest.ini").write_text("[pytest]\n")
    status, said, tests = run(path, "--tokbudget-refresh", "first", "--tokbudget-sessions", "3")
    assert status == 0, said
    assert {one["outcome"] for one in tests.values()} == {"RECORDED"}
    (path / "first.json").write_text(json.dumps(tests))
    return path


def test_a_regression_says_where_the_milliseconds_went(project: Path) -> None:
    status, said, tests = run(project, "--tokbudget", "-k", "train", CHURN="1")

    test = tests["test_train_step"]
    assert status == 1, said
    assert test["outcome"] == "REGRESSED"
    (device,) = test["devices"]
    step_ms = 2048 / test["sessions"][0]["tok_s"] * 1e3
    assert sum(device["ledger"].values()) == pytest.approx(step_ms, rel=1e-3)
    assert 0 < device["busy_ms_per_step"] < step_ms
    assert device["uuid"].startswith("GPU-")
    assert test["findings"][0]["cause"] == "allocator"
    counters = test["counters"]
    stored = json.loads((project / "first.json").read_text())["test_train_step"]["counters"]
    assert counters["kernel_launches"] == stored["kernel_launches"] > 0
    assert counters["device_frees"] > stored.get("device_frees", 0)
    assert 0 < test["perturbation"]["cuda"] < 1.5
    assert "allocator" in said


def test_idle_time_that_a_function_causes_is_that_functions(project: Path) -> None:
    _, said, tests = run(
        project, "--tokbudget", "--tokbudget-evidence", "always", "-k", "host", PACK="1"
    )

    test = tests["test_host_step"]
    # What the function cost in the very steps that were timed: a host's speed wanders within
    # seconds. No cause can have slowed the step by more than it is slower.
    timed = slice(test["warmup_steps"], test["warmup_steps"] + test["steps"])
    packing_ms = mean(json.loads((project / "packing_ms").read_text())[timed])
    slower_ms = 64e3 / test["tok_s"] - 64e3 / test["baseline_tok_s"]
    first = test["findings"][0]
    assert first["cause"] == "python: pack_documents", said
    line = (project / "test_step.py").read_text().splitlines()[first["line"] - 1]
    assert line.strip().startswith(("for _ in range", "value = (value"))
    assert first["delta_ms_per_step"] >= 0.9 * min(packing_ms, slower_ms), said
    (joined,) = (one for one in test["sentences"] if "waited for its host in the trace" in one)
    assert "MainThread in pack_documents (test_step.py:" in joined, said
    assert "idle: python: pack_documents" in test["devices"][0]["ledger"], said
