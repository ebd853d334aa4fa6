"""What a baseline knows of the spread of its sessions, and of the jobs they came from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_tokbudget.records.baseline import Baseline, Spread, StoredSession

from .outliers import slow_outliers
from .spread import about_mean, pooled, pooled_or_larger, slowness

LEARNED_DEGREES = 10.0
"""At most this much of what earlier refreshes taught is carried on, so that old news fades."""

SETTLED_DEGREES = 10.0
SETTLED_JOBS = 5
NEW_BASELINE_JOBS_TERM = 2.0
SETTLED_JOBS_TERM = 1.0


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


def counted_appended(baseline: Baseline) -> list[StoredSession]:
    """Return the appended sessions without those of a slow host (``slow_outliers``).

    All of them are stored. One slow host in ten sessions would otherwise widen the spread tenfold
    for ever, and the gate could decide nothing.
    """
    slow = set(slow_outliers([slowness(session.tok_s) for session in baseline.appended]))
    return [one for index, one in enumerate(baseline.appended) if index not in slow]


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
    appended = counted_appended(baseline)
    learned = baseline.learned or Spread(variance=0.0, degrees=0.0, jobs=0)
    jobs = len({session.job for session in (*baseline.anchor, *appended)}) + learned.jobs
    degrees = len(anchor) - 1 + len(appended) + learned.degrees
    since = about_anchor(
        by_job(appended), float(np.mean(anchor)), len(anchor), jobs_term(degrees, jobs)
    )
    whole = pooled_or_larger(pooled(about_mean(anchor), since), learned)
    return Spread(variance=whole.variance, degrees=whole.degrees, jobs=jobs)
