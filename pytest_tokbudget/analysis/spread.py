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
from scipy.special import fdtri, stdtrit

from pytest_tokbudget.records.baseline import Baseline, Spread, StoredSession

SMALLEST_SPREAD = 0.0025
"""Standard deviations below this are not believed: few sessions agree this well by luck."""

LEARNED_DEGREES = 10.0
"""At most this much of what earlier refreshes taught is carried on, so that old news fades."""

SETTLED_DEGREES = 10.0
SETTLED_JOBS = 5
NEW_BASELINE_JOBS_TERM = 2.0
SETTLED_JOBS_TERM = 1.0
DISAGREEMENT_ALPHA = 0.05
"""Two-sided level of the F test that tells whether two spreads can be of one population."""


def slowness(tok_s: float) -> float:
    """Return x = −log tok/s; ``tok_s`` must be positive."""
    return -log(tok_s)


def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t with ``degrees`` > 0 degrees of freedom."""
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
    """Return the pooled spread, or the larger one where an F test says that the two disagree."""
    if min(first.degrees, second.degrees) == 0:
        return pooled(first, second)
    large, small = sorted((first, second), key=lambda one: one.variance, reverse=True)
    limit = fdtri(large.degrees, small.degrees, 1 - DISAGREEMENT_ALPHA / 2)
    if large.variance > limit * max(small.variance, SMALLEST_SPREAD**2):
        return large
    return pooled(first, second)


def jobs_term(degrees: float, jobs: int) -> float:
    """Return J, the variance between jobs in units of the variance within one.

    Sessions taken back to back understate the next job's distance. Once the spread rests on enough
    sessions of enough jobs, it holds the jobs' own variance already, and J may fall.
    """
    settled = degrees >= SETTLED_DEGREES and jobs >= SETTLED_JOBS
    return SETTLED_JOBS_TERM if settled else NEW_BASELINE_JOBS_TERM


def about_anchor(
    jobs: Sequence[Sequence[float]], anchor_mean: float, anchor_sessions: int, between: float
) -> Spread:
    """Return what appended sessions teach, grouped by job; ``between`` is J.

    The mean of n sessions of another job lies from the mean of K anchor sessions with variance
    s² (1/n + 1/K + J); within the job they lie about their own mean with variance s².
    """
    spread = Spread(variance=0.0, degrees=0.0)
    for x in jobs:
        expected = 1 / len(x) + 1 / anchor_sessions + between
        distance = (float(np.mean(x)) - anchor_mean) ** 2 / expected
        spread = pooled(spread, Spread(variance=distance, degrees=1.0))
        spread = pooled(spread, about_mean(x))
    return spread


def job_count(baseline: Baseline) -> int:
    """Return how many jobs the spread of ``baseline`` rests on."""
    own = {session.job for session in (*baseline.anchor, *baseline.appended)}
    learned = baseline.learned
    return len(own) + (learned.jobs if learned is not None else 0)


def by_job(sessions: Sequence[StoredSession]) -> list[list[float]]:
    """Return x of ``sessions``, one list a job, in the order the jobs first appear."""
    jobs: dict[str, list[float]] = {}
    for session in sessions:
        jobs.setdefault(session.job, []).append(slowness(session.tok_s))
    return list(jobs.values())


def baseline_spread(baseline: Baseline) -> Spread:
    """Return what ``baseline`` knows of the spread: anchor, appended sessions, learned spread.

    ``jobs`` of the result counts all the jobs it rests on. The anchor must not be empty.
    """
    anchor = [slowness(session.tok_s) for session in baseline.anchor]
    learned = baseline.learned or Spread(variance=0.0, degrees=0.0, jobs=0)
    jobs = job_count(baseline)
    degrees = len(anchor) - 1 + len(baseline.appended) + learned.degrees
    between = jobs_term(degrees, jobs)
    appended = about_anchor(by_job(baseline.appended), float(np.mean(anchor)), len(anchor), between)
    fresh = pooled_or_larger(about_mean(anchor), appended)
    whole = pooled_or_larger(fresh, learned)
    return Spread(variance=whole.variance, degrees=whole.degrees, jobs=jobs)
