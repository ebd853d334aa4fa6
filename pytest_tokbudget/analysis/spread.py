"""How far sessions of unchanged code lie apart, and on how much knowledge that rests.

Everything is in x = −log tok/s of one session: larger is slower, a difference of 0.01 is 1 %.
A ``Spread`` is a variance of x within one job, with the degrees of freedom it rests on. Sources:
pooled variance and Student's t (Student 1908; Snedecor & Cochran, *Statistical Methods*, ch. 6),
the variance ratio F (Fisher 1924), the deleted residual (Cook & Weisberg 1982, §2.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np

from pytest_tokbudget.records.baseline import Spread

SMALLEST_SPREAD = 0.0025
"""Standard deviations below this are not believed: few sessions agree this well by luck."""

NO_SPREAD = Spread(variance=0.0, degrees=0.0)
"""Nothing is known."""

DISAGREEMENT_ALPHA = 0.05
"""Two-sided level of the F test that tells whether two spreads can be of one population."""


def slowness(tok_s: float) -> float:
    """Return x = −log tok/s; ``tok_s`` must be positive."""
    return -log(tok_s)


def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t with ``degrees`` > 0 degrees of freedom."""
    # Not above: scipy takes longer to import than this package, and many a run judges nothing.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def deviation(spread: Spread) -> float:
    """Return the standard deviation to judge with, never below ``SMALLEST_SPREAD``."""
    return max(sqrt(spread.variance), SMALLEST_SPREAD)


def about_mean(x: Sequence[float]) -> Spread:
    """Return the spread of ``x`` about its own mean; 0 degrees for fewer than two values."""
    if len(x) < 2:
        return Spread(variance=0.0, degrees=0.0)
    return Spread(variance=float(np.var(x, ddof=1)), degrees=float(len(x) - 1))


def pooled(first: Spread, second: Spread) -> Spread:
    """Return both spreads pooled by degrees of freedom (one population is assumed)."""
    degrees = first.degrees + second.degrees
    jobs = max(first.jobs, second.jobs)
    if degrees == 0:
        return Spread(variance=0.0, degrees=0.0, jobs=jobs)
    total = first.variance * first.degrees + second.variance * second.degrees
    return Spread(variance=total / degrees, degrees=degrees, jobs=jobs)


def pooled_or_larger(first: Spread, second: Spread) -> Spread:
    """Return the pooled spread; where an F test says that the two disagree, the larger variance.

    The degrees are pooled in either case. A few sessions that lie far apart widen what follows;
    their own few degrees alone would make any answer impossible.
    """
    whole = pooled(first, second)
    if min(first.degrees, second.degrees) == 0:
        return whole
    large, small = sorted((first, second), key=lambda one: one.variance, reverse=True)
    from scipy.special import fdtri

    limit = fdtri(large.degrees, small.degrees, 1 - DISAGREEMENT_ALPHA / 2)
    if large.variance <= limit * max(small.variance, SMALLEST_SPREAD**2):
        return whole
    return Spread(variance=large.variance, degrees=whole.degrees, jobs=whole.jobs)
