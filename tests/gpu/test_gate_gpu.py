"""The whole gate on a real device, as a user runs it: evidence in run.json and in the baseline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

PROJECT = """
import os
import pytest
import torch

@pytest.mark.tokbudget(steps=60, tolerance="5%", sessions="2:2")
def test_train_step(tokbudget):
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(16))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.ones(2048, 2048, device="cuda")

    def step():
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if os.environ.get("CHURN"):
            torch.cuda.empty_cache()
        return 2048

    tokbudget(step)
"""


def run(project: Path, *args: str, **environment: str) -> tuple[int, str, dict[str, Any]]:
    """Run pytest on the project; its status, what it printed, and its only test of run.json."""
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_tokbudget.plugin", *args],
        cwd=project,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    (test,) = json.loads((project / ".tokbudget" / "run.json").read_text())["tests"]
    return found.returncode, found.stdout + found.stderr, test


def test_a_regression_says_where_the_milliseconds_went(tmp_path: Path) -> None:
    (tmp_path / "test_step.py").write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    status, said, stored = run(
        tmp_path, "--tokbudget-refresh", "first", "--tokbudget-sessions", "3"
    )
    assert status == 0, said
    assert stored["outcome"] == "RECORDED"

    status, said, test = run(tmp_path, "--tokbudget", CHURN="1")

    assert status == 1, said
    assert test["outcome"] == "REGRESSED"
    (device,) = test["devices"]
    step_ms = 2048 / test["sessions"][0]["tok_s"] * 1e3
    assert sum(device["ledger"].values()) == pytest.approx(step_ms, rel=1e-3)
    assert 0 < device["busy_ms_per_step"] < step_ms
    assert device["uuid"].startswith("GPU-")
    assert test["findings"][0]["cause"] == "allocator"
    assert test["counters"]["kernel_launches"] == stored["counters"]["kernel_launches"] > 0
    assert test["counters"]["device_frees"] > stored["counters"].get("device_frees", 0)
    assert 0 < test["perturbation"]["cuda"] < 1.5
    assert "allocator" in said
