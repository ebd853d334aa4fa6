"""The judge's rule for many runs at once: ``analysis.looks`` with a leading axis N.

A simulation needs it some million times. ``tests/benchmarks/test_detection_rule.py`` proves it
equal to the functions that judge, call by call, on random input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri, stdtrit

from . import looks, outliers, settled, spread

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

UNDECIDED, PASSED, IMPROVED, REGRESSED = range(4)


@dataclass(frozen=True)
class Knowledge:
    """N baselines: means, variances, degrees and J, each of shape (N,); K anchor sessions."""

    mean: Floats
    variance: Floats
    degrees: Floats
    between: Floats
    sessions: int


def learn(anchor: Floats, appended: Floats | None = None) -> Knowledge:
    """Return what ``anchor`` (N, K), one job, and ``appended`` (N, A), a job each, teach."""
    runs, sessions = anchor.shape
    mean = anchor.mean(axis=1)
    variance = anchor.var(axis=1, ddof=1)
    degrees = np.full(runs, sessions - 1.0)
    between = np.full(runs, settled.NEW_BASELINE_JOBS_TERM)
    if appended is not None:
        kept = ~slow(appended)
        count = kept.sum(axis=1).astype(float)
        rich = (degrees + count >= settled.SETTLED_DEGREES) & (1 + count >= settled.SETTLED_JOBS)
        between = np.where(rich, settled.SETTLED_JOBS_TERM, between)
        expected = 1 + 1 / sessions + between
        total = ((appended - mean[:, None]) ** 2 * kept).sum(axis=1) / expected
        variance = (variance * degrees + total) / (degrees + count)
        degrees = degrees + count
    return Knowledge(mean, variance, degrees, between, sessions)


def slow(x: Floats) -> Flags:
    """Return which of ``x`` (N, n) ``outliers.slow_outliers`` names."""
    order = np.argsort(x, axis=1, kind="stable")
    ordered = np.take_along_axis(x, order, axis=1)
    found = np.zeros(len(x), np.int64)
    for number in range((x.shape[1] - 1) // 2, 0, -1):
        kept = ordered[:, : x.shape[1] - number]
        degrees = np.full(len(x), kept.shape[1] - 1.0)
        excess = _excess(ordered[:, -number], kept, kept.var(axis=1, ddof=1), degrees)
        found = np.where((found == 0) & (excess > 1), number, found)
    rank = np.argsort(order, axis=1, kind="stable")
    return np.asarray(rank >= x.shape[1] - found[:, None], np.bool_)


def _excess(value: Floats, others: Floats, variance: Floats, degrees: Floats) -> Floats:
    deviation = np.maximum(np.sqrt(variance), spread.SMALLEST_SPREAD)
    error = deviation * np.sqrt(1 + 1 / others.shape[1])
    critical = _student(np.maximum(degrees, 1), 1 - outliers.SET_ASIDE_ALPHA)
    excess = (value - others.mean(axis=1)) / error / critical
    return np.where(degrees >= 1, excess, 0.0)


def decide(known: Knowledge, new: Floats, delta: float, share: float = 1.0) -> tuple[Ints, Ints]:
    """Return the outcome and the sessions used, each (N,), of looks at ``new`` (N, MAX).

    ``share`` is as in ``looks.look_level``.
    """
    runs, most = new.shape
    outcome = np.full(runs, UNDECIDED)
    used = np.full(runs, most)
    open_ = np.ones(runs, np.bool_)
    for done in range(1, most + 1):
        now, ends = _one_look(known, new[:, :done], delta, looks.look_level(done, most, share))
        ends = open_ & (ends | (done == most))
        outcome = np.where(ends, now, outcome)
        used = np.where(ends, done, used)
        open_ &= ~ends
    return outcome, used


def _one_look(known: Knowledge, new: Floats, delta: float, level: float) -> tuple[Ints, Flags]:
    """Return the outcome of one look and whether it ends the run."""
    runs, done = new.shape
    if done < 2:
        return _weigh(known, new, delta, level, left_out=False)
    slowest = new.argmax(axis=1)
    others = new[np.arange(done)[None, :] != slowest[:, None]].reshape(runs, done - 1)
    own = others.var(axis=1, ddof=1) if done > 2 else np.zeros(runs)
    degrees = known.degrees + done - 2
    variance = (known.variance * known.degrees + own * (done - 2)) / degrees
    aside = _excess(new.max(axis=1), others, variance, degrees) > 1
    whole = _weigh(known, new, delta, level, left_out=False)
    without = _weigh(known, others, delta, level, left_out=True)
    return np.where(aside, without[0], whole[0]), np.where(aside, without[1], whole[1])


def _weigh(
    known: Knowledge, x: Floats, delta: float, level: float, *, left_out: bool
) -> tuple[Ints, Flags]:
    count = x.shape[1]
    variance, degrees = _with_new(known, x)
    deviation = np.maximum(np.sqrt(variance), spread.SMALLEST_SPREAD)
    d = x.mean(axis=1) - known.mean
    root = np.sqrt(1 / known.sessions + 1 / count + known.between)
    h = _student(degrees, level) * deviation * root
    single = np.sqrt(1 / known.sessions + 1 + known.between)
    bound = _student(degrees, looks.SESSION_LEVEL) * deviation * single
    passed = (d <= delta) & (d + h < 2 * delta) & (count >= (2 if left_out else 1))
    improved = passed & (d + h < 0) & (d <= -delta)
    regressed = (d > delta) & (d > h) & (x.min(axis=1) - known.mean > bound) & (count >= 2)
    outcome = np.where(passed, PASSED, np.where(regressed, REGRESSED, UNDECIDED))
    ends = passed | (regressed & (count >= looks.CONFIRMING_SESSIONS))
    return np.where(improved, IMPROVED, outcome), ends


def _with_new(known: Knowledge, x: Floats) -> tuple[Floats, Floats]:
    """Return variance and degrees, the new sessions' own pooled in, or the larger variance."""
    fresh = x.shape[1] - 1
    if fresh < 1:
        return known.variance, known.degrees
    own = x.var(axis=1, ddof=1)
    total = known.degrees + fresh
    whole = (known.variance * known.degrees + own * fresh) / total
    first = known.variance >= own
    large = np.where(first, known.variance, own)
    small = np.maximum(np.where(first, own, known.variance), spread.SMALLEST_SPREAD**2)
    level = 1 - spread.DISAGREEMENT_ALPHA / 2
    # Baselines have few different degrees between them, and each quantile takes microseconds.
    degrees, which = np.unique(known.degrees, return_inverse=True)
    over, under = fdtri(degrees, fresh, level)[which], fdtri(fresh, degrees, level)[which]
    return np.where(large > np.where(first, over, under) * small, large, whole), total


def _student(degrees: Floats, level: float) -> Floats:
    """Return Student's quantile for each of ``degrees``, computed once for equal ones."""
    different, which = np.unique(degrees, return_inverse=True)
    return np.asarray(stdtrit(different, level)[which], np.float64)
