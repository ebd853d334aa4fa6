"""Exact counters of new sessions held against those of a baseline's anchor: what changed.

A counter that differs in a share p of sessions of unchanged code shows in none of K and in all of R
sessions with a chance of (1 − p)^K · p^R, at most K^K R^R / (K + R)^(K + R).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pytest_tokbudget.analysis.exact_counters import per_step
from pytest_tokbudget.records.counters import ExactCounters

PROOFS = ((5, 3), (8, 2), (10, 2))
"""(K, R): identical sessions of the baseline and changed new ones that prove a change."""


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
    return shown(low) if low == high else f"{shown(low)} … {shown(high)}"


def shown(value: Fraction) -> str:
    """Return a count a step as a person reads it."""
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{value.numerator:,}/{value.denominator}"
