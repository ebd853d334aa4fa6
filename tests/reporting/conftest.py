"""Results as a judged test leaves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_tokbudget.records.machine import Accelerator, Commit, MachineRecord, Software
from pytest_tokbudget.records.result import QueueResult, StepMs, TestResult

ResultOf = Callable[..., TestResult]

REASONS = {
    "PASS": "0.4 % slower than the baseline, tolerance 3 %: code 6 % slower would look this good "
    "in fewer than 1 run in 100.",
    "REGRESSED": "5.1 % slower than the baseline, tolerance 3 %: unchanged code would look this "
    "slow in fewer than 1 run in 100.\nEach of 2 sessions alone is slower than the baseline.",
    "NO_BASELINE": "No baseline for this machine class, cpu-amd-epyc-2c.\n"
    'to make one: pytest --tokbudget-refresh "REASON" tests/test_speed.py::test_step',
}
COMPARED = {"tok_s": 13740.0, "baseline_tok_s": 14480.0, "change_pct": -5.11, "mde_pct": 1.92}


@pytest.fixture
def machine() -> MachineRecord:
    return MachineRecord(
        cpu_model="AMD EPYC 9654 96-Core Processor",
        usable_cores=16,
        memory_bytes=1 << 37,
        host_hash="4f2a",
        accelerators=[
            Accelerator(index=0, uuid="GPU-1f", product="NVIDIA H200", form_factor="SXM")
        ],
        software=Software(python="3.11.9", tokbudget="0.1.0", torch="2.11.0", cuda="13.0"),
        commit=Commit(sha="a1b2c3d4e5f6a7", dirty_paths=["model.py"]),
    )


@pytest.fixture
def result_of() -> ResultOf:
    def build(outcome: str, **fields: Any) -> TestResult:
        figures: dict[str, Any] = {
            "nodeid": "tests/test_speed.py::test_step",
            "outcome": outcome,
            "reason": REASONS.get(outcome, f"The reason of {outcome}."),
            "token_kind": "real",
            "steps": 200,
            "warmup_steps": 24,
            "step_ms": StepMs(p50=15.8123, p95=16.24, max=31.02),
            "tolerance_pct": 3.0,
            **COMPARED,
            "ci_pct": (-6.4, -3.8),
            "sessions": [
                {"tok_s": 13720.0, "set_aside": None},
                {"tok_s": 13760.0, "set_aside": None},
                {"tok_s": 11020.0, "set_aside": "a slow host"},
            ],
            "queues": [
                QueueResult(
                    name="features",
                    capacity=8,
                    put_blocked_s=0.01,
                    get_blocked_s=3.1,
                    put_blocked_pct=0.21,
                    get_blocked_pct=41.2,
                    puts=200,
                    gets=200,
                    mean_depth=0.31,
                    low_water=2,
                    low_water_dips=12,
                )
            ],
        }
        return TestResult(**(figures | fields))

    return build
