"""Counters that gate: exact counts of every step, held against those of the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tokbudget.analysis.exact_counters import (
    ALWAYS_KNOWN,
    TOKENS,
    exact_counters,
)
from pytest_tokbudget.errors import MeasureError
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.counters import ExactCounters
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome

from .counter_changes import PROOFS, Change, compared, shown
from .ruling import Ruling
from .wording import count

CANNOT = 'counters="fail" cannot be judged: '
_REFRESH = '--tokbudget-refresh "why"'


def judge_counters(runs: Sequence[RunRecord], baseline: Baseline, *, may_measure: bool) -> Ruling:
    """Judge the counters of all ``runs`` against those of the baseline.

    REGRESSED on a proven increase, WORKLOAD_CHANGED on another number of tokens a step; while one
    stands unproven, another session, and INCONCLUSIVE without. Less of anything passes. Raises
    ``MeasureError`` where a side lacks counters, or they were counted by other instruments.
    """
    new = [exact_counters(run) for run in runs]
    _admit(new, baseline, runs[0].workload.nodeid)
    appended = [one.counters for one in baseline.appended if one.counters is not None]
    changes, inexact = compared(new, anchor_counters(baseline), appended)
    return ruling_on(changes, inexact, may_measure=may_measure)


def ruling_on(
    changes: Sequence[Change], inexact: Sequence[str], *, against: str = "", may_measure: bool
) -> Ruling:
    """Return the ruling on what ``compared`` found; ``against`` names the ref of an A/B, whose
    sessions come in pairs."""
    bad = [one for one in changes if one.stands and (one.stands > 0 or one.name == TOKENS)]
    proven = [one for one in bad if one.proven]
    sentences = [_sentence(one, against) for one in (*proven, *(x for x in bad if not x.proven))]
    notes = _notes(changes, inexact, against)
    if proven:
        tokens = any(one.name == TOKENS for one in proven)
        outcome = Outcome.WORKLOAD_CHANGED if tokens else Outcome.REGRESSED
        what = (
            "Another number of tokens a step is another workload"
            if tokens
            else "More of an exact counter is the program's own doing"
        )
        remedy = (
            f'say counters="show" until {against} has it too'
            if against
            else f"move the baseline: {_REFRESH}"
        )
        sentences.append(f"{what}; if it is intended, {remedy}.")
        return Ruling(outcome, (*sentences, *notes))
    if bad:
        needs, more = _needs(min(one.k for one in bad), against)
        sentences.append(needs)
        more = more and may_measure
        return Ruling(Outcome.INCONCLUSIVE, (*sentences, *notes), wants_more=more)
    return Ruling(Outcome.PASS, tuple(notes))


def anchor_counters(baseline: Baseline) -> list[ExactCounters]:
    """The counters of the anchor's sessions, of those that have any."""
    return [one.counters for one in baseline.anchor if one.counters is not None]


def _admit(new: Sequence[ExactCounters], baseline: Baseline, nodeid: str) -> None:
    """Fail closed where there is nothing exact to compare."""
    for number, one in enumerate(new, start=1):
        if one.untraced:
            raise MeasureError(
                f"{CANNOT}expected a complete device trace in every session, found none in session "
                f"{number}: {one.untraced}"
            )
    anchor = anchor_counters(baseline)
    refresh = f"measure it again: pytest {_REFRESH} {nodeid}"
    names = {frozenset((*one.counts, *one.varying)) for one in anchor}
    whole = len(anchor) == len(baseline.anchor) and len(names) == 1
    if not whole or any(one.untraced for one in anchor):
        raise MeasureError(
            f"{CANNOT}expected the same counters in every anchor session of the baseline, found "
            f"some missing; {refresh}"
        )
    admit_alike((*anchor, *new), f"; {refresh}")


def admit_alike(sessions: Sequence[ExactCounters], remedy: str = "") -> None:
    """Refuse sessions without the counters that need no trace, or of unlike instruments.

    Raises ``MeasureError``, which ends with ``remedy``.
    """
    missing = [
        name
        for name in ALWAYS_KNOWN
        if any(name not in (*one.counts, *one.varying) for one in sessions)
    ]
    if missing:
        raise MeasureError(f"{CANNOT}{', '.join(missing)} were not counted{remedy}")
    instruments = {one.instrument for one in sessions}
    if len(instruments) > 1:
        found = ", ".join(sorted(one or "no device trace" for one in instruments))
        raise MeasureError(
            f"{CANNOT}expected the same instruments in every session, found {found}{remedy}"
        )


def _sentence(one: Change, against: str) -> str:
    return (
        f"{one.name.replace('_', ' ')} {shown(one.then)} → {one.now} a step in every step of "
        f"{count(len(one.directions), 'session')} ({against or 'baseline'}: {shown(one.then)} in "
        f"{count(one.k, 'session')})."
    )


def _needs(k: int, against: str) -> tuple[str, bool]:
    """What a proof needs, and whether further sessions can bring it."""
    if against:
        pairs = min(map(max, PROOFS))
        return f"{pairs} pairs that all show it would prove it (--tokbudget-max-time).", True
    needed = next((r for least, r in reversed(PROOFS) if k >= least), None)
    if needed is None:
        return (
            f"{count(k, 'identical session')} of the baseline cannot prove that this is no chance: "
            f"it needs {PROOFS[0][0]} ({_REFRESH} --tokbudget-sessions {PROOFS[0][0]})."
        ), False
    return (
        f"{needed} new sessions that all show it would prove it (--tokbudget-sessions 1:{needed})."
    ), True


def _notes(changes: Sequence[Change], inexact: Sequence[str], against: str) -> list[str]:
    """What never fails a test: less of something, changes in some sessions, inexact counters."""
    notes = []
    for one in changes:
        if one.stands < 0 and one.name != TOKENS:
            hold = "" if against else f" To hold it, refresh: {_REFRESH}."
            notes.append(f"Improved: {_sentence(one, against)}{hold}")
        elif one.stands == 0:
            seen = sum(map(bool, one.directions))
            notes.append(
                f"{one.name.replace('_', ' ')} {shown(one.then)} → {one.now} a step, but in "
                f"{seen} of {count(len(one.directions), 'session')}: that proves nothing."
            )
    if inexact:
        notes.append(
            f"Not the same in every step of {against or 'the baseline'}, so no gate: "
            f"{', '.join(inexact)}."
        )
    return notes
