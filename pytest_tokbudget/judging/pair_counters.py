"""Counters that gate against a git ref: both sides of every pair count their own steps.

P pairs are K = P sessions at the ref and R = P at HEAD; the proofs are those of ``counters``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tokbudget.analysis.exact_counters import NO_TRACE, exact_counters
from pytest_tokbudget.errors import MeasureError
from pytest_tokbudget.records.run import RunRecord

from .counter_changes import compared
from .counters import CANNOT, admit_alike, ruling_on
from .ruling import Ruling


def judge_pair_counters(
    heads: Sequence[RunRecord], refs: Sequence[RunRecord], *, against: str, may_measure: bool
) -> Ruling:
    """Judge the counters of ``heads`` against those of ``refs``, as ``judge_counters`` does.

    ``against`` names the ref in sentences. Raises ``MeasureError`` where a side was not traced, or
    they were counted by different instruments.
    """
    new, then = map(exact_counters, heads), map(exact_counters, refs)
    sides = {"this side": list(new), against: list(then)}
    for side, sessions in sides.items():
        for number, one in enumerate(sessions, start=1):
            if one.untraced:
                remedy = (
                    '; say counters="fail" in the marker, which has both sides traced'
                    if one.untraced == NO_TRACE
                    else ""
                )
                raise MeasureError(
                    f"{CANNOT}expected a complete device trace of both sides of every pair, found "
                    f"none of {side} in pair {number}: {one.untraced}{remedy}"
                )
    admit_alike([one for sessions in sides.values() for one in sessions])
    changes, inexact = compared(sides["this side"], sides[against])
    return ruling_on(changes, inexact, against=against, may_measure=may_measure)
