"""Counters that gate: exact counts of every step, held against those of the baseline.

A counter that differs in a share p of sessions of unchanged code shows in none of K and in all of R
sessions with a chance of (1 − p)^K · p^R, at most K^K R^R / (K + R)^(K + R).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pytest_tokbudget.analysis.exact_counters import (
    ALWAYS_KNOWN,
    TOKENS,
    exact_counters,
    per_step,
)
from pytest_tokbudget.errors import MeasureError
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.counters import ExactCounters
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome

from .ruling import Ruling
from .wording import count

PROOFS = ((5, 3), (8, 2), (10, 2))
"""(K, R): identical sessions of the baseline and changed new ones that prove a change."""

CANNOT = 'counters="fail" cannot be judged: '
_REFRESH = '--tokbudget-refresh "why"'


def false_alarm_bound(k: int, r: int) -> float:
    """The largest chance, over every p, that unchanged code looks changed: p = R / (K + R)."""
    p = r / (k + r)
    return float((1 - p) ** k * p**r)


@dataclass(frozen=True)
class Change:
    """One counter: ``then`` in ``k`` sessions of the baseline; ``directions`` of each new session:
    1 for more in every step, −1 for less, 0 for neither. ``now`` is as it is written."""

    name: str
    then: Fraction
    now: str
    k: int
    directions: tuple[int, ...]

    @property
    def stands(self) -> int:
        """The direction that every new session shares, else 0."""
        return self.directions[0] if len(set(self.directions)) == 1 else 0

    @property
    def proven(self) -> bool:
        """Whether so many sessions leave no room for chance."""
        r = len(self.directions)
        return self.stands != 0 and any(self.k >= k and r >= least for k, least in PROOFS)


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


def changed_counters(
    now: ExactCounters, anchor: Sequence[ExactCounters]
) -> dict[str, tuple[float, float]]:
    """Return exact counters of ``now`` that differ from all of ``anchor``, (then, now) a step."""
    found = {}
    for name in sorted({name for one in (now, *anchor) for name in one.counts}):
        new, then = per_step(now, name), {per_step(one, name) for one in anchor}
        old = then.pop() if len(then) == 1 else None
        if old is not None and new is not None and old != new:
            found[name] = (float(old), float(new))
    return found


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
        shown = ", ".join(sorted(one or "no device trace" for one in instruments))
        raise MeasureError(
            f"{CANNOT}expected the same instruments in every session, found {shown}{remedy}"
        )


def compared(
    new: Sequence[ExactCounters],
    anchor: Sequence[ExactCounters],
    appended: Sequence[ExactCounters] = (),
) -> tuple[list[Change], list[str]]:
    """Return what changed in any session, and the counters that the anchor cannot hold."""
    names = {name for one in (*anchor, *new) for name in (*one.counts, *one.varying)}
    changes, inexact = [], []
    for name in sorted(names):
        values = {per_step(one, name) for one in anchor}
        then = values.pop() if len(values) == 1 else None
        if then is None:
            inexact.append(name)
            continue
        directions = tuple(_direction(then, one, name) for one in new)
        if any(directions):
            k = len(anchor)
            # Sessions appended since may only strengthen the anchor, never speak against it:
            # else a regression could be appended away.
            if all(per_step(one, name) == then for one in appended):
                k += len(appended)
            changes.append(Change(name, then, _now(new, name), k, directions))
    return changes, inexact


def _direction(then: Fraction, now: ExactCounters, name: str) -> int:
    value = per_step(now, name)
    if value is not None:
        return (value > then) - (value < then)
    # Every step above, or below, is a change in every step, though not an exact one.
    least, most = now.varying.get(name, (0, 0))
    if (least, most) == (0, 0) or then.denominator != 1:
        return 0
    return (least > then) - (most < then)


def _now(new: Sequence[ExactCounters], name: str) -> str:
    ends: list[Fraction] = []
    for one in new:
        value = per_step(one, name)
        ends += [value] if value is not None else map(Fraction, one.varying.get(name, (0, 0)))
    low, high = min(ends), max(ends)
    return _shown(low) if low == high else f"{_shown(low)} … {_shown(high)}"


def _shown(value: Fraction) -> str:
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{value.numerator:,}/{value.denominator}"


def _sentence(one: Change, against: str) -> str:
    return (
        f"{one.name.replace('_', ' ')} {_shown(one.then)} → {one.now} a step in every step of "
        f"{count(len(one.directions), 'session')} ({against or 'baseline'}: {_shown(one.then)} in "
        f"{count(one.k, 'session')})."
    )


def _needs(k: int, against: str) -> tuple[str, bool]:
    """What a proof needs, and whether further sessions can bring it."""
    if against:
        pairs = max(PROOFS[0])
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
                f"{one.name.replace('_', ' ')} {_shown(one.then)} → {one.now} a step, but in "
                f"{seen} of {count(len(one.directions), 'session')}: that proves nothing."
            )
    if inexact:
        notes.append(
            f"Not the same in every step of {against or 'the baseline'}, so no gate: "
            f"{', '.join(inexact)}."
        )
    return notes
