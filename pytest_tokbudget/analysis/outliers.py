"""Sessions slower than the others beyond chance: a slow host, not slow code."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from pytest_tokbudget.records.baseline import Spread

from .spread import NO_SPREAD, about_mean, deviation, pooled, student_quantile

SET_ASIDE_ALPHA = 0.001
"""One-sided level at which a session is called slower than the others (a slow host)."""


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

    ``x`` is −log tok/s of sessions of one workload. One at a time, by the one-sided Student test of
    ``slow_excess``, from the inside out: the k-th slowest is tested against all faster ones, for k
    from just under half of the sessions down to 1, and the first that fails it takes the slower
    ones with it. So two slow hosts cannot hide each other (Rosner 1983, the generalized extreme
    studentized deviate, one-sided). Three sessions are the fewest.
    """
    order = sorted(range(len(x)), key=lambda index: x[index])
    for slow in range((len(x) - 1) // 2, 0, -1):
        kept = [x[index] for index in order[: len(x) - slow + 1]]
        if slow_excess(kept, len(kept) - 1, NO_SPREAD, alpha) > 1:
            return order[: len(x) - slow - 1 : -1]
    return []
