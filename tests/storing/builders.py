"""Records with the fields that a test does not care about filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pytest_tokbudget.records.baseline import Baseline, RefreshEntry, StoredSession
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.records.machine import (
    Accelerator,
    Commit,
    MachineClass,
    MachineRecord,
    Software,
)
from pytest_tokbudget.records.run import Pass, RunRecord, WarmUp
from pytest_tokbudget.records.workload import Workload
from pytest_tokbudget.storing.machine_class import machine_class
from pytest_tokbudget.storing.refresh_log import mean_tok_s

H200 = Accelerator(
    index=0,
    uuid="GPU-11111111-0000-0000-0000-000000000000",
    product="NVIDIA H200",
    form_factor="SXM",
    memory_bytes=143_771 << 20,
    mig_profile="",
    power_limit_w=700.0,
)
SOFTWARE = Software(python="3.11.7", tokbudget="0.1.0", torch="2.13.0", os="Linux 6.8")


def machine(**changes: Any) -> MachineRecord:
    """A host with one H200, changed as told."""
    base = MachineRecord(
        cpu_model="AMD EPYC 9655 96-Core Processor",
        usable_cores=16,
        memory_bytes=128 << 30,
        host_hash="0123456789ab",
        accelerators=[H200],
        software=SOFTWARE,
        commit=Commit(sha="c0ffee", branch="main"),
    )
    return msgspec.structs.replace(base, **changes)


def h200_class(**changes: Any) -> MachineClass:
    return machine_class(machine(**changes))


def workload(qualname: str = "test_step", **changes: Any) -> Workload:
    base = Workload(
        path="tests/test_train.py",
        qualname=qualname,
        nodeid=f"tests/test_train.py::{qualname}",
        declaration={"token_kind": "real", "token_scope": "global", "lr": 0.123456789012},
    )
    return msgspec.structs.replace(base, **changes)


def run(tok_s: float = 1000.0, *, tolerance: float | None = 0.03, **changes: Any) -> RunRecord:
    """A steady run of 100 steps in 10 s at ``tok_s``, changed as told."""
    base = RunRecord(
        workload=workload(),
        budget=Budget(steps=100, tolerance=tolerance),
        machine=machine(),
        unix_offset_ns=1_700_000_000_000_000_000,
        pid=7,
        devices=["cuda:0"],
        warmup=WarmUp(steps=20, seconds=2.0, steady=True),
        passes=[
            Pass(
                kind="timing",
                start_ns=5_000_000_000,
                end_ns=15_000_000_000,
                steps=100,
                tokens={"real": int(tok_s * 10)},
                tok_s=tok_s,
            )
        ],
        marks=[],
    )
    return msgspec.structs.replace(base, **changes)


def runs(rates: Sequence[float], **changes: Any) -> list[RunRecord]:
    return [run(rate, **changes) for rate in rates]


def session(tok_s: float, job: str = "job", **changes: Any) -> StoredSession:
    base = StoredSession(
        tok_s=tok_s,
        steps=100,
        seconds=10.0,
        warmup_steps=20,
        warmup_seconds=2.0,
        job=job,
        commit="c0ffee",
        host_hash="0123456789ab",
        unix_s=1_700_000_015,
        software=SOFTWARE,
    )
    return msgspec.structs.replace(base, **changes)


STEADY = (1000.0, 1004.0, 998.0, 1001.0, 997.0)
"""Five rates that spread by about 0.3 %."""


def sessions(rates: Sequence[float] = STEADY, job: str = "job") -> list[StoredSession]:
    return [session(rate, job) for rate in rates]


def entry(reason: str = "first", rates: Sequence[float] = STEADY) -> RefreshEntry:
    """The line of a log that belongs to an anchor of ``rates``."""
    return RefreshEntry(
        date="2026-01-02",
        commit="c0ffee",
        reason=reason,
        new_tok_s=float(f"{mean_tok_s(sessions(rates)):.7g}"),
    )


def moved(rates: Sequence[float], old_tok_s: float = 1000.0, reason: str = "moved") -> RefreshEntry:
    """The line of a log where an anchor of ``rates`` replaced one of ``old_tok_s``."""
    new = entry(reason, rates)
    ratio = new.new_tok_s / old_tok_s
    return msgspec.structs.replace(
        new,
        old_tok_s=old_tok_s,
        change_pct=100 * (ratio - 1),
        change_ci_pct=(100 * (ratio / 1.02 - 1), 100 * (ratio * 1.02 - 1)),
    )


def baseline(rates: Sequence[float] = STEADY, **changes: Any) -> Baseline:
    base = Baseline(
        workload=workload(),
        machine_class=h200_class(),
        token_kind="real",
        anchor=sessions(rates, job="old"),
        log=[entry(rates=rates)],
    )
    return msgspec.structs.replace(base, **changes)
