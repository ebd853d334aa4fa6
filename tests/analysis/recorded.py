"""Causes of recorded windows, for the tests on recordings with alternating unprofiled truth."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from benchmarks.evidence_files import read
from benchmarks.recorded_sessions import load_session
from pytest_tokbudget.analysis.cause_table import cause_table
from pytest_tokbudget.analysis.growth import growth_findings
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.records.causes import CauseTable
from pytest_tokbudget.records.result import Finding

RECORDINGS = Path(__file__).parents[1] / "data" / "evidence"


@cache
def causes_of(recording: Path, fault: str, compared_with: str) -> CauseTable:
    """The causes of one window, its step as measured in the blocks of ``compared_with``."""
    truth = read(recording).meta["truth"][compared_with]
    step_ms = truth["reference_ms"] + truth["cost_ms"] * (fault != "none")
    (one,) = (each for each in load_session(recording) if each.fault == fault)
    program = decode(one.timeline, None, one.queues, one.main_thread).program
    return cause_table(one.timeline, program, step_ms)


def growth_of(recording: Path, fault: str) -> list[Finding]:
    """What grew under a fault, against the unfaulted blocks that alternated with it."""
    then = causes_of(recording, "none", fault)
    return growth_findings(causes_of(recording, fault, fault), then)


def truth_ms(recording: Path, fault: str) -> float:
    """What the fault costs unprofiled, ms a step."""
    return float(read(recording).meta["truth"][fault]["cost_ms"])
