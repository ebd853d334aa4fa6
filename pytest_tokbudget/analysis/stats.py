"""Statistics of sessions that storing and judging share. x = −log tok/s: larger is slower."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, sqrt

import numpy as np

from pytest_tokbudget.records.baseline import Baseline, Spread

from .outliers import slow_outliers
from .settled import LEARNED_DEGREES, baseline_spread
from .spread import NO_SPREAD, about_mean, deviation, pooled_or_larger, student_quantile

__all__ = ["change_interval", "percent_of_rate", "pool_learned", "slow_outliers"]


def pool_learned(baseline: Baseline) -> Spread:
    """Return what ``baseline`` teaches about the spread, for the refresh that replaces it.

    Anchor, appended sessions and what it had learned itself, worth at most ``LEARNED_DEGREES``.
    """
    spread = baseline_spread(baseline)
    return Spread(
        variance=spread.variance,
        degrees=min(spread.degrees, LEARNED_DEGREES),
        jobs=spread.jobs,
    )


def percent_of_rate(d: float) -> float:
    """Return the change of tok/s in percent that a difference ``d`` of x means; slower is < 0."""
    return 100 * expm1(-d)


def change_interval(
    old: Sequence[float],
    new: Sequence[float],
    *,
    known: Spread | None = None,
    between: float = 0.0,
    confidence: float = 0.99,
) -> tuple[float, tuple[float, float]]:
    """Return the change of tok/s from ``old`` to ``new`` in percent, and its interval.

    ``old`` and ``new`` are x = −log tok/s of sessions; ``known`` is further knowledge of the
    spread; ``between`` is the variance between jobs in units of the variance within one (J). The
    interval is Student's with pooled variance. It is infinite upwards and −100 % downwards where no
    two sessions of one side exist and nothing else is known. Raises ``ValueError`` for no sessions.
    """
    if not old or not new:
        raise ValueError(f"sessions on both sides are needed, got {len(old)} old, {len(new)} new")
    spread = pooled_or_larger(about_mean(old), about_mean(new))
    spread = pooled_or_larger(spread, known or NO_SPREAD)
    d = float(np.mean(new) - np.mean(old))
    if spread.degrees == 0:
        return percent_of_rate(d), (-100.0, float("inf"))
    half = student_quantile(0.5 + confidence / 2, spread.degrees) * deviation(spread)
    half *= sqrt(1 / len(old) + 1 / len(new) + between)
    return percent_of_rate(d), (percent_of_rate(d + half), percent_of_rate(d - half))
