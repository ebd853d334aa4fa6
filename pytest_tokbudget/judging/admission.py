"""What must hold before anything is judged: fail closed, never pass."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from pytest_tokbudget.errors import (
    MeasureError,
    MismatchError,
    NothingMeasuredError,
    UnreadableError,
    UsageError,
)
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.records.run import RunRecord

from .comparable import differing_fields
from .wording import count


def admit(runs: Sequence[RunRecord], budget: Budget) -> None:
    """Refuse what cannot be judged.

    Raises ``UsageError`` for a budget that demands nothing or something impossible,
    ``NothingMeasuredError`` for no session, or a session without steps, tokens or a rate, and
    ``MeasureError`` for sessions of one test that measured different things.
    """
    _admit_budget(budget)
    if not runs:
        raise NothingMeasuredError("nothing was measured: expected at least one session, found 0")
    for number, run in enumerate(runs, start=1):
        _admit_run(run, budget.token_kind, number)
    for number, run in enumerate(runs[1:], start=2):
        _admit_pair(runs[0], run, number)


def _admit_budget(budget: Budget) -> None:
    if budget.tolerance is None and budget.floor_tok_s is None and not budget.ceilings:
        raise UsageError(
            "tolerance=None judges nothing without a floor or ceilings: give floor=… as well"
        )
    if budget.tolerance is None and budget.counters == "fail":
        raise UsageError('counters="fail" compares with a baseline, and tolerance=None wants none')
    if budget.tolerance is not None and not 0 < budget.tolerance < 1:
        raise UsageError(f"tolerance must lie between 0 and 1, found {budget.tolerance!r}")
    if budget.floor_tok_s is not None and not (
        isfinite(budget.floor_tok_s) and budget.floor_tok_s > 0
    ):
        raise UsageError(f"floor must be a positive rate in tok/s, found {budget.floor_tok_s!r}")


def _admit_run(run: RunRecord, kind: str, number: int) -> None:
    timing = next((one for one in run.passes if one.kind == "timing"), None)
    if timing is None or timing.steps <= 0 or timing.end_ns <= timing.start_ns:
        raise NothingMeasuredError(
            f"session {number} measured nothing: expected a timing pass of at least one step, "
            f"found {'none' if timing is None else count(timing.steps, 'step')}"
        )
    tokens = timing.tokens.get(kind, 0)
    if tokens <= 0:
        seen = ", ".join(f"{total:,} {name}" for name, total in timing.tokens.items()) or "none"
        raise NothingMeasuredError(
            f"session {number} counted no {kind!r} tokens in {count(timing.steps, 'step')} "
            f"(tokens seen: {seen}); return them from the step or name another token_kind"
        )
    if not (isfinite(timing.tok_s) and timing.tok_s > 0):
        raise NothingMeasuredError(
            f"session {number} has no rate: expected tok/s above 0, found {timing.tok_s!r}"
        )


def _admit_pair(first: RunRecord, run: RunRecord, number: int) -> None:
    if run.workload.identity != first.workload.identity:
        raise MeasureError(
            f"session {number} measured another test: expected {first.workload.identity}, "
            f"found {run.workload.identity}"
        )
    differences = differing_fields(first.workload.declaration, run.workload.declaration)
    if run.budget.token_kind != first.budget.token_kind:
        kinds = f"token_kind {first.budget.token_kind} → {run.budget.token_kind}"
        differences = differences or [kinds]
    if differences:
        raise MeasureError(
            f"session {number} declared another workload than session 1: "
            f"{'; '.join(differences)}; a workload must be the same in every session"
        )


def admit_baseline(baseline: Baseline, run: RunRecord) -> None:
    """Refuse a baseline that is of another test or holds no usable rates.

    Raises ``MismatchError`` and ``UnreadableError``.
    """
    if baseline.workload.identity != run.workload.identity:
        raise MismatchError(
            f"the baseline belongs to another test: expected {run.workload.identity}, "
            f"found {baseline.workload.identity}"
        )
    for part, sessions in (("anchor", baseline.anchor), ("appended", baseline.appended)):
        for number, session in enumerate(sessions, start=1):
            if not (isfinite(session.tok_s) and session.tok_s > 0):
                raise UnreadableError(
                    f"{part} session {number} of the baseline of {baseline.workload.identity} has "
                    f"tok_s {session.tok_s!r}: expected a rate above 0; restore the file from git"
                )
