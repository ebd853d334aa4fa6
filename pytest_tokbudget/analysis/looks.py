"""The rule that decides between two ends, one look at a time.

x = −log tok/s of a session, d = mean(new) − mean(anchor): positive is slower. With δ the tolerance
in x, unchanged code (d = 0) must not fail and code slower by 2δ must not pass; in between the
estimate decides. h is the half width of Student's 99 % interval of d,

    h = t(0.995, ν) · s · √(1/K + 1/R + J)

for K anchor sessions, R new ones and a variance J·s² between jobs. Each look spends 0.5 % on either
end, as in a group-sequential plan with constant bounds (Pocock 1977).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from pytest_tokbudget.records.baseline import Baseline, Spread
from pytest_tokbudget.records.verdict import Outcome

from .spread import (
    about_mean,
    baseline_spread,
    deviation,
    jobs_term,
    pooled_or_larger,
    slowness,
    student_quantile,
)
from .stats import slow_excess

LOOK_LEVEL = 0.995
SESSION_LEVEL = 0.95
"""Each counted session alone must be slower than the anchor at this one-sided level."""


@dataclass(frozen=True)
class Anchor:
    """A baseline as the rule sees it: mean of x, sessions K, spread within a job, and J."""

    mean: float
    sessions: int
    spread: Spread
    between: float


@dataclass(frozen=True)
class Look:
    """One look. ``outcome`` is PASS, IMPROVED, REGRESSED, or INCONCLUSIVE (look again).

    ``d`` and ``half_width`` are in x; ``spread`` is all that is known of it; ``counted`` are the
    indices of the sessions that count, ``set_aside`` the one that does not; ``detectable`` is the
    smallest d that sessions lying like these would have shown as REGRESSED (one alone: as two).
    """

    outcome: Outcome
    d: float
    half_width: float
    spread: Spread
    counted: tuple[int, ...]
    set_aside: int | None
    detectable: float


def anchor_of(baseline: Baseline) -> Anchor:
    """Return what the rule needs of ``baseline``, whose anchor must hold at least two sessions."""
    spread = baseline_spread(baseline)
    return Anchor(
        mean=float(np.mean([slowness(session.tok_s) for session in baseline.anchor])),
        sessions=len(baseline.anchor),
        spread=spread,
        between=jobs_term(spread.degrees, spread.jobs),
    )


def half_width(anchor: Anchor, spread: Spread, sessions: int) -> float:
    """Return h for ``sessions`` new ones."""
    root = sqrt(1 / anchor.sessions + 1 / sessions + anchor.between)
    return student_quantile(LOOK_LEVEL, spread.degrees) * deviation(spread) * root


def session_bound(anchor: Anchor, spread: Spread) -> float:
    """Return how far above the anchor's mean one new session is slower than it by itself."""
    root = sqrt(1 / anchor.sessions + 1 + anchor.between)
    return student_quantile(SESSION_LEVEL, spread.degrees) * deviation(spread) * root


def set_aside(anchor: Anchor, new: Sequence[float]) -> int | None:
    """Return the index of the one new session slower than the other new ones, if there is one.

    Never measured against the anchor: a slow-down of all new sessions sets none aside.
    """
    if len(new) < 2:
        return None
    slowest = int(np.argmax(new))
    return slowest if slow_excess(new, slowest, anchor.spread) > 1 else None


def look(anchor: Anchor, new: Sequence[float], delta: float, *, lost: int = 0) -> Look:
    """Judge ``new`` (x of the sessions so far, at least one) against ``anchor``.

    ``delta`` is δ = −ln(1 − tolerance). ``lost`` sessions were measured and cannot count (never
    steady); at most one of all may be left out, so with one lost none is set aside.
    """
    aside = set_aside(anchor, new) if lost == 0 else None
    counted = tuple(index for index in range(len(new)) if index != aside)
    x = [new[index] for index in counted]
    spread = pooled_or_larger(anchor.spread, about_mean(x))
    d = float(np.mean(x)) - anchor.mean
    h = half_width(anchor, spread, len(x))
    bound = session_bound(anchor, spread)
    least = 2 if lost or aside is not None else 1
    outcome = Outcome.INCONCLUSIVE
    if len(x) >= least and d <= delta and d + h < 2 * delta:
        outcome = Outcome.IMPROVED if d + h < 0 and d <= -delta else Outcome.PASS
    elif len(x) >= 2 and d > delta and d - h > 0 and min(x) - anchor.mean > bound:
        outcome = Outcome.REGRESSED
    wide = half_width(anchor, spread, max(2, len(x)))
    detectable = max(delta, wide, bound + float(np.mean(x)) - min(x))
    return Look(outcome, d, h, spread, counted, aside, detectable)


def sessions_needed(anchor: Anchor, seen: Look, delta: float, limit: int) -> int | None:
    """Return how many counted sessions in all would decide, if further ones lie like these.

    ``None`` when more than ``limit`` would be needed, or no number would do: the sessions of one
    job share its mood, so h does not fall below what J leaves.
    """
    have = len(seen.counted)
    for count in range(max(have + 1, 2), limit + 1):
        spread = Spread(variance=seen.spread.variance, degrees=seen.spread.degrees + count - have)
        if decides(anchor, spread, seen.d, delta, count):
            return count
    return None


def decides(anchor: Anchor, spread: Spread, d: float, delta: float, count: int) -> bool:
    """Return whether ``count`` sessions that all lie ``d`` above the anchor would be decided."""
    h = half_width(anchor, spread, count)
    if d <= delta:
        return d + h < 2 * delta
    return count >= 2 and d > h and d > session_bound(anchor, spread)
