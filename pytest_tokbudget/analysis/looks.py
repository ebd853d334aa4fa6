"""The rule that decides between two ends, one look at a time.

x = −log tok/s of a session, d = mean(new) − mean(anchor): positive is slower. With δ the tolerance
in x, unchanged code (d = 0) must not fail and code slower by 2δ must not pass; in between the
estimate decides. At each look d is held against

    h = t(level, ν) · s · √(1/K + 1/R + J)

for K anchor sessions, R new ones and a variance J·s² between jobs. Either end may err in 0.8 % of
all runs: the last look spends 0.6 %, the earlier ones share 0.2 % (group-sequential spending in the
manner of O'Brien & Fleming 1979 and Lan & DeMets 1983: early looks decide the clear cases only).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from pytest_tokbudget.records.baseline import Baseline, Spread
from pytest_tokbudget.records.verdict import Outcome

from .outliers import slow_excess
from .settled import baseline_spread, jobs_term
from .spread import (
    about_mean,
    deviation,
    pooled_or_larger,
    slowness,
    student_quantile,
)

LAST_LOOK_ALPHA = 0.006
EARLIER_LOOKS_ALPHA = 0.002
INTERVAL_LEVEL = 0.995
"""Of the interval that is shown: two-sided 99 %, whatever the look."""

CONFIRMING_SESSIONS = 3
"""Two slow hosts in a row are 1 in 100 where one in ten is slow; three are 1 in 1000."""

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
    """One look. ``outcome`` is PASS, IMPROVED, REGRESSED, or INCONCLUSIVE.

    ``settled`` is whether another look could add nothing: a REGRESSED of fewer than
    ``CONFIRMING_SESSIONS`` stands only where no other session may be measured. ``d`` and
    ``half_width`` (of its 99 % interval) are in x; ``spread`` is all that is known of it;
    ``counted`` are the indices of the sessions that count, ``set_aside`` the one that does not;
    ``detectable`` is the smallest d that sessions lying like these would have shown as REGRESSED
    at a last look (one alone: as two).
    """

    outcome: Outcome
    settled: bool
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


def look_level(done: int, most: int, share: float = 1.0) -> float:
    """Return the one-sided level of the look after ``done`` of at most ``most`` sessions.

    ``share`` is the part of the error that this estimator may spend, where two are looked at.
    """
    if done >= most:
        return 1 - share * LAST_LOOK_ALPHA
    return 1 - share * EARLIER_LOOKS_ALPHA / (most - 1)


def half_width(
    anchor: Anchor, spread: Spread, sessions: int, level: float = INTERVAL_LEVEL
) -> float:
    """Return h for ``sessions`` new ones."""
    root = sqrt(1 / anchor.sessions + 1 / sessions + anchor.between)
    return student_quantile(level, spread.degrees) * deviation(spread) * root


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


def look(
    anchor: Anchor,
    new: Sequence[float],
    delta: float,
    *,
    most: int,
    lost: int = 0,
    share: float = 1.0,
) -> Look:
    """Judge ``new`` (x of the sessions so far, at least one) against ``anchor``.

    ``delta`` is δ = −ln(1 − tolerance); ``most`` how many sessions may be measured in all. ``lost``
    further sessions were measured and cannot count (never steady); at most one of all may be left
    out, so with one lost none is set aside. ``share`` is as in ``look_level``.
    """
    aside = set_aside(anchor, new) if lost == 0 else None
    counted = tuple(index for index in range(len(new)) if index != aside)
    x = [new[index] for index in counted]
    spread = pooled_or_larger(anchor.spread, about_mean(x))
    d = float(np.mean(x)) - anchor.mean
    last = len(new) + lost >= most
    h = half_width(anchor, spread, len(x), look_level(len(new) + lost, most, share))
    bound = session_bound(anchor, spread)
    least = 2 if lost or aside is not None else 1
    outcome = Outcome.INCONCLUSIVE
    if len(x) >= least and d <= delta and d + h < 2 * delta:
        outcome = Outcome.IMPROVED if d + h < 0 and d <= -delta else Outcome.PASS
    elif len(x) >= 2 and d > delta and d > h and min(x) - anchor.mean > bound:
        outcome = Outcome.REGRESSED
    few = outcome is Outcome.REGRESSED and len(x) < CONFIRMING_SESSIONS
    wide = half_width(anchor, spread, max(2, len(x)), 1 - share * LAST_LOOK_ALPHA)
    return Look(
        outcome=outcome,
        settled=last or not (few or outcome is Outcome.INCONCLUSIVE),
        d=d,
        half_width=half_width(anchor, spread, len(x)),
        spread=spread,
        counted=counted,
        set_aside=aside,
        detectable=max(delta, wide, bound + float(np.mean(x)) - min(x)),
    )


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
    """Return whether a last look at ``count`` sessions that all lie at ``d`` would decide."""
    h = half_width(anchor, spread, count, 1 - LAST_LOOK_ALPHA)
    if d <= delta:
        return d + h < 2 * delta
    return count >= 2 and d > h and d > session_bound(anchor, spread)
