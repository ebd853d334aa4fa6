"""Sessions and baselines to judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_tokbudget.records.baseline import Baseline, Spread, StoredSession
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.records.machine import Commit, MachineClass, MachineRecord, Software
from pytest_tokbudget.records.run import Pass, RunRecord, WarmUp
from pytest_tokbudget.records.workload import Workload

SOFTWARE = Software(python="3.11", tokbudget="0.1.0", torch="2.11")


def budget(tolerance: float | None = 0.03, floor: float | None = None, **more: Any) -> Budget:
    return Budget(steps=10, tolerance=tolerance, floor_tok_s=floor, **more)


def workload(**declaration: Any) -> Workload:
    return Workload(
        path="tests/test_train.py",
        qualname="test_step",
        nodeid="tests/test_train.py::test_step",
        declaration={"token_kind": "real", **declaration},
    )


def session(tok_s: float, *, unsteady: str = "", **more: Any) -> RunRecord:
    """One session; ``more`` replaces fields of the record."""
    fields: dict[str, Any] = {
        "workload": workload(),
        "budget": budget(),
        "machine": MachineRecord(
            cpu_model="cpu",
            usable_cores=2,
            memory_bytes=1,
            host_hash="h",
            software=SOFTWARE,
            commit=Commit(),
        ),
        "unix_offset_ns": 0,
        "pid": 1,
        "devices": ["cpu"],
        "warmup": WarmUp(steps=4, seconds=1.0, steady=not unsteady, reason=unsteady),
        "passes": [timing(tok_s)],
        "marks": [],
    }
    return RunRecord(**{**fields, **more})


def timing(tok_s: float, steps: int = 10, **tokens: int) -> Pass:
    counted = tokens or {"real": 1000}
    return Pass(kind="timing", start_ns=0, end_ns=10**9, steps=steps, tokens=counted, tok_s=tok_s)


def stored(tok_s: float, job: str = "a") -> StoredSession:
    return StoredSession(
        tok_s=tok_s,
        steps=10,
        seconds=1.0,
        warmup_steps=4,
        warmup_seconds=1.0,
        job=job,
        commit=None,
        host_hash="h",
        unix_s=0,
        software=SOFTWARE,
    )


def baseline(
    anchor: Sequence[float],
    appended: Sequence[StoredSession] = (),
    learned: Spread | None = None,
    **more: Any,
) -> Baseline:
    fields: dict[str, Any] = {
        "workload": workload(),
        "machine_class": MachineClass(slug="m", fields={}),
        "token_kind": "real",
        "anchor": [stored(tok_s) for tok_s in anchor],
        "appended": list(appended),
        "learned": learned,
        "log": [],
    }
    return Baseline(**{**fields, **more})
