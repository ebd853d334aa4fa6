"""Statistics of sessions that storing and judging share. x = −log tok/s: larger is slower."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, sqrt

import numpy as np

from pytest_tokbudget.records.baseline import Baseline, Spread

from .spread import (
    LEARNED_DEGREES,
    about_mean,
    baseline_spread,
    deviation,
    pooled,
    pooled_or_larger,
    student_quantile,
)

SET_ASIDE_ALPHA = 0.001
"""One-sided level at which a session is called slower than the others (a slow host)."""

NO_SPREAD = Spread(variance=0.0, degrees=0.0)


def slow_excess(
    x: Sequence[float],
    index: int,
    known: Spread = NO_SPREAD,
    alpha: float = SET_ASIDE_ALPHA,
) -> float:
    """Return how far ``x[index]`` lies above the others, in units of the critical distance.

    Above 1 means: slower than the others by a one-sided Student test at ``alpha``. The value is
    left out of the mean and of the spread it is tested against (the externally studentized, or
    deleted, residual), so that an outlier cannot hide itself. ``known`` is spread learned
    elsewhere, pooled with that of the others. Without one degree of freedom the answer is 0.
    """
    others = [value for place, value in enumerate(x) if place != index]
    if not others:
        return 0.0
    spread = pooled(known, about_mean(others))
    if spread.degrees < 1:
        return 0.0
    error = deviation(spread) * sqrt(1 + 1 / len(others))
    critical = student_quantile(1 - alpha, spread.degrees)
    return float((x[index] - np.mean(others)) / error / critical)


def slow_outliers(x: Sequence[float], alpha: float = SET_ASIDE_ALPHA) -> list[int]:
    """Return the indices of sessions slower than the others, most extreme first.

    ``x`` is −log tok/s of sessions of one workload. One at a time: the slowest is tested against
    the rest by a one-sided Student test at ``alpha``, left out if it fails, and the next is tested
    against what is left. At least three values must remain to test against one another.
    """
    left = list(range(len(x)))
    found: list[int] = []
    while len(left) >= 3:
        slowest = max(range(len(left)), key=lambda place: x[left[place]])
        if slow_excess([x[index] for index in left], slowest, NO_SPREAD, alpha) <= 1:
            break
        found.append(left.pop(slowest))
    return found


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
