"""run.json is a stable contract: every documented key is present, ``null`` when not known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_tokbudget.records.machine import MachineRecord
from pytest_tokbudget.records.result import (
    DeviceResult,
    Finding,
    FrameResult,
    NativeFrameResult,
    RunResult,
    TestResult,
    ThreadResult,
)
from pytest_tokbudget.storing.codec import encode_pretty

RUN_KEYS = {"schema", "created", "commit", "machine", "tests"}
TEST_KEYS = {
    *("nodeid", "outcome", "reason", "tok_s", "token_kind", "baseline_tok_s", "change_pct"),
    *("ci_pct", "mde_pct", "tolerance_pct", "floor_tok_s", "sessions", "steps", "warmup_steps"),
    *("step_ms", "devices", "threads", "hot_frames", "queues", "counters", "findings"),
    *("perturbation", "native_frames", "native_sampling", "unavailable"),
}
PART_KEYS = {
    "step_ms": {"p50", "p95", "max"},
    "devices": {"uuid", "name", "busy_ms_per_step", "idle_pct", "ledger"},
    "threads": {"name", "tid", "role", "cpu_pct"},
    "hot_frames": {
        *("function", "file", "line", "share", "samples", "threads"),
        *("caller", "cpu_s", "ms_per_step", "thread_share", "threads_are"),
    },
    "native_frames": {
        *("function", "library", "caller", "file", "line", "called_from"),
        *("share", "cpu_s", "samples", "threads"),
    },
    "findings": {
        *("cause", "device", "thread", "file", "line"),
        *("ms_per_step", "baseline_ms_per_step", "delta_ms_per_step", "samples"),
    },
}

NATIVE = NativeFrameResult(
    function="deflate",
    library="libz.so.1",
    caller="f",
    file="a.py",
    line=1,
    share=1.0,
    cpu_s=9.0,
    samples=90,
    threads=["main"],
)


def decoded(machine: MachineRecord | None, *tests: TestResult) -> dict[str, Any]:
    run = RunResult(created="2026-01-02T03:04:05Z", commit=None, machine=machine, tests=[*tests])
    found: dict[str, Any] = json.loads(encode_pretty(run))
    return found


def test_every_key_is_there(result_of: Callable[..., TestResult], machine: MachineRecord) -> None:
    full = result_of(
        "PASS",
        devices=[DeviceResult(uuid=None, name="cpu")],
        threads=[ThreadResult(name="main", tid=1)],
        hot_frames=[
            FrameResult(function="f", file="a.py", line=1, share=1, samples=1, threads=["main"])
        ],
        native_frames=[NATIVE],
        findings=[Finding(cause="sync")],
    )

    run = decoded(machine, full)

    assert set(run) == RUN_KEYS
    (test,) = run["tests"]
    assert set(test) >= TEST_KEYS
    for name, keys in PART_KEYS.items():
        part = test[name][0] if isinstance(test[name], list) else test[name]
        assert set(part) >= keys
    assert test["ci_pct"] == [-6.4, -3.8]


def test_the_unknown_is_null() -> None:
    run = decoded(None, TestResult(nodeid="a.py::b", outcome="FAILED", reason="it broke"))

    (test,) = run["tests"]
    known = {"nodeid", "outcome", "reason", "unavailable"}
    assert set(test) >= TEST_KEYS
    assert all(test[name] is None for name in TEST_KEYS - known)
    assert run["machine"] is run["commit"] is None
