"""From a recorded trace to what is stored of it: an H200's GPU-bound loop, with its ABBA truth."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evidence_files import read
from pytest_tokbudget.analysis.evidence_findings import ledger_difference, rank_findings
from pytest_tokbudget.analysis.traced_evidence import (
    TraceEvidence,
    TraceFindings,
    traced_evidence,
)
from pytest_tokbudget.records.causes import CauseTable
from pytest_tokbudget.records.evidence import Evidence
from pytest_tokbudget.records.marks import MarkSeries

RECORDING = Path(__file__).parents[1] / "data" / "evidence" / "gpu_bound_cuda.npz"


def truth() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = read(RECORDING).meta["truth"]
    return found


def step_ms(fault: str) -> float:
    """The unprofiled step of one fault: that of the paired blocks without it, and its cost."""
    if fault == "none":
        return float(np.mean([one["reference_ms"] for one in truth().values()]))
    return step_ms("none") + truth()[fault]["cost_ms"]


@cache
def found_in(fault: str) -> TraceFindings:
    recording = read(RECORDING)
    timeline = recording.timeline(fault)
    window = recording.meta["windows"][fault]
    offset = window["unix_offset_ns"]
    main = next(one.native_id for one in timeline.threads if one.name == "MainThread")
    marks = MarkSeries(
        worker="train",
        native_id=main,
        counts=True,
        times_ns=[one - offset for one in window["step_ends_ns"]],
    )
    evidence = TraceEvidence(
        timeline=timeline,
        timing_step_ms=step_ms(fault),
        timing_steps=100,
        timing_ns=(0, 1),
        traced_ns=(window["start_ns"] - offset, window["end_ns"] - offset),
        unix_offset_ns=offset,
        marks=[marks],
        queues=[],
        canary_unix_ns=tuple(window["canary_ns"]),
        canary_ms=9.8,
    )
    findings = traced_evidence(evidence)
    assert isinstance(findings, TraceFindings)
    return findings


@pytest.mark.parametrize("fault", ["none", "item", "cache"])
def test_the_measured_ledger_sums_to_the_step_of_the_timing_pass(fault: str) -> None:
    (ledger,) = found_in(fault).ledgers

    assert sum(ledger.rows_ms.values()) == pytest.approx(step_ms(fault))
    assert sum(ledger.traced_ms.values()) == pytest.approx(
        read(RECORDING).meta["windows"][fault]["ms_per_step"], rel=0.1
    )
    assert ledger.busy_ms < step_ms(fault)


@pytest.mark.parametrize(("fault", "cause"), [("item", "synchronization"), ("cache", "allocator")])
def test_the_injected_cause_comes_first_with_its_milliseconds(fault: str, cause: str) -> None:
    then, now = (
        Evidence(ledgers=one.ledgers, causes=causes)
        for one in (found_in("none"), found_in(fault))
        if isinstance(causes := one.causes, CauseTable)
    )
    cost_ms = truth()[fault]["cost_ms"]

    first = rank_findings(now, then)[0]

    assert first.cause == cause
    assert first.delta_ms_per_step == pytest.approx(cost_ms, rel=0.1, abs=0.15)
    difference = ledger_difference(now.ledgers[0], then.ledgers[0])
    assert sum(difference.values()) == pytest.approx(cost_ms)


def test_counters_are_of_every_step() -> None:
    counters = found_in("none").counters

    assert set(map(len, counters.values())) == {12}
    assert len(set(counters["kernel_launches"])) == 1
    assert sum(found_in("item").counters["syncs_stream"]) > sum(counters["syncs_stream"])
