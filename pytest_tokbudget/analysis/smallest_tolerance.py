"""The smallest tolerance that the judge's rule can hold at the spread that was measured.

A tolerance holds where simulated unchanged code is REGRESSED in at most ``MOST_FALSE_ALARMS`` of
runs and undecided in at most ``MOST_UNDECIDED``, and code slower by twice the tolerance passes in
at most ``MOST_MISSED``. Spreads are standard deviations of x = −log tok/s, thus fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp, expm1, log, log1p, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from . import many_looks, many_pairs
from .pairs import MOST_PAIRS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_FALSE_ALARMS = 0.01
MOST_MISSED = 0.01
MOST_UNDECIDED = 0.05

ANCHOR_SESSIONS = 5
SETTLED_APPENDED = 10
RUNS = 4_000
_SEED = 20250
_PRECISION = 0.01
_LARGEST_DELTA = log(20.0)
"""A tolerance of 95 %: what does not hold there is no gate."""


@dataclass(frozen=True)
class Held:
    """A tolerance (0.03 is 3 %) that holds, and the sessions (or pairs) that unchanged code then
    takes to its verdict, on average."""

    tolerance: float
    mean_used: float


def interval_of_deviation(s: float, degrees: float, level: float = 0.95) -> tuple[float, float]:
    """Return the two-sided ``level`` interval of the standard deviation that ``s`` estimates.

    Of normal sessions ν s² / σ² is χ² with ν degrees. Raises ``ValueError`` for ν < 1.
    """
    if degrees < 1:
        raise ValueError("one session has no spread: at least 2 of one job are needed")
    tail = (1 - level) / 2
    low, high = (s * sqrt(degrees / float(chdtri(degrees, p))) for p in (tail, 1 - tail))
    return low, high


def smallest_with_sessions(
    spread: float, most: int, *, settled: bool, between_jobs: float = 0.0
) -> Held | None:
    """Return the smallest tolerance that up to ``most`` new sessions hold, or ``None``.

    ``spread`` is that of sessions within a job, ``between_jobs`` the variance between jobs in
    units of its square. The baseline is 5 sessions of one job, ``settled`` by 10 further jobs.
    """
    rng = np.random.default_rng(_SEED)

    def job(sessions: int) -> Floats:
        own = rng.standard_normal((RUNS, sessions))
        return np.asarray(
            spread * (own + sqrt(between_jobs) * rng.standard_normal((RUNS, 1))), np.float64
        )

    anchor = job(ANCHOR_SESSIONS)
    jobs = [job(1) for _ in range(SETTLED_APPENDED)] if settled else []
    known = many_looks.learn(anchor, np.concatenate(jobs, axis=1) if jobs else None)
    passes = (many_looks.PASSED, many_looks.IMPROVED)
    decide = partial(many_looks.decide, known)
    return _smallest(decide, job(most), passes, many_looks.REGRESSED)


def smallest_with_pairs(spread: float) -> Held | None:
    """Return the smallest tolerance that an A/B of up to 12 pairs holds, or ``None``.

    A pair's difference has √2 the ``spread`` of sessions within a job.
    """
    rng = np.random.default_rng(_SEED)
    new = sqrt(2) * spread * rng.standard_normal((RUNS, MOST_PAIRS))
    return _smallest(many_pairs.decide, new, (many_pairs.PASSED,), many_pairs.REGRESSED)


def _smallest(
    decide: Callable[[Floats, float], tuple[Ints, Ints]],
    new: Floats,
    passes: tuple[int, ...],
    regressed: int,
) -> Held | None:
    """Bisect log δ on the same draws, to a relative ``_PRECISION``."""

    def holds(delta: float) -> bool:
        same, slower = decide(new, delta)[0], decide(new + 2 * delta, delta)[0]
        return bool(
            np.mean(same == regressed) <= MOST_FALSE_ALARMS
            and np.mean(same == many_looks.UNDECIDED) <= MOST_UNDECIDED
            and np.mean(np.isin(slower, passes)) <= MOST_MISSED
        )

    if not holds(_LARGEST_DELTA):
        return None
    low, high = log(-log1p(-1e-5)), log(_LARGEST_DELTA)
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(exp(middle)) else (middle, high)
    delta = exp(high)
    return Held(-expm1(-delta), float(np.mean(decide(new, delta)[1])))
