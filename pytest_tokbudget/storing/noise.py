"""Whether a workload is steady enough, between sessions, for its own tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..analysis.spread import about_mean, deviation, student_quantile
from ..analysis.stats import pool_learned
from ..errors import RefreshRefusedError
from ..records.baseline import Baseline, StoredSession
from ..records.budget import Budget
from .refresh_log import x_of

SETTLED_DEGREES, SETTLED_JOBS_TERM = 30.0, 1.0
"""The most a baseline comes to know of its spread: see :func:`narrowest_tolerance`."""

FIRST_JOBS_TERM = 2.0


def narrowest_tolerance(spread: float, *, sessions: int, most: int, settled: bool = True) -> float:
    """The smallest tolerance, as a share, at which unchanged code can still be told to pass.

    ``spread`` is the standard deviation of log tok/s between sessions, ``sessions`` those of the
    anchor, ``most`` those a judgement may measure. From the rule for PASS with no change at all:
    t(0.995, ν) · s · √(1/K + 1/R + J) < 2δ, tolerance = 1 − exp(−δ). ``settled`` takes what a
    baseline comes to know (ν = 30, J = 1), otherwise what a first one knows (ν = K − 1, J = 2).
    """
    degrees = SETTLED_DEGREES if settled else float(sessions - 1)
    between = SETTLED_JOBS_TERM if settled else FIRST_JOBS_TERM
    half = student_quantile(0.995, degrees) * spread
    half *= math.sqrt(1 / sessions + 1 / most + between)
    return 1 - math.exp(-half / 2)


def check_noise(sessions: Sequence[StoredSession], budget: Budget, old: Baseline | None) -> str:
    """Refuse a spread that no number of later sessions could judge; return advice on a wide one.

    The bound is that of a settled baseline, not of a first one: a first one knows too little of its
    spread to be held to it, and learns. It moves with the tolerance, so a workload that varies by
    20 % can be recorded by an author who tolerates as much.
    """
    if budget.tolerance is None:
        return ""
    spread = deviation(about_mean(x_of(sessions)))
    count, most = len(sessions), max(budget.sessions)
    least = narrowest_tolerance(spread, sessions=count, most=most)
    wide = (
        f"{count} sessions spread by {100 * spread:.2g} % (standard deviation) at a tolerance of "
        f"{100 * budget.tolerance:.3g} %"
    )
    if budget.tolerance < least:
        raise RefreshRefusedError(
            f"too noisy: {wide}; even a settled baseline could not tell unchanged code from code "
            f"twice the tolerance slower. This spread supports a tolerance of {100 * least:.2g} % "
            "or more: widen it, take longer sessions (steps=), quieten the machine, or judge "
            "against a git ref (--tokbudget-against)"
        )
    first = narrowest_tolerance(spread, sessions=count, most=most, settled=False)
    if budget.tolerance < first and (old is None or pool_learned(old).jobs == 1):
        return (
            f"{wide}: until more jobs are added (--tokbudget-append), "
            "judgements may often be INCONCLUSIVE"
        )
    return ""
