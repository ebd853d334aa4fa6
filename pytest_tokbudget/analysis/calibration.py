"""The noise floor of one workload on one machine: what sessions of unchanged code tell of the gate.

x = −log tok/s of one session. Sessions of one invocation of pytest (a job) share its host and its
mood, so their variance about the job's own mean is told from that of the jobs about each other (one
way analysis of variance, Searle, Casella & McCulloch 1992, *Variance Components*, §3.6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import sqrt

import numpy as np

from ..records.baseline import Spread
from ..records.run import RunRecord
from .autocorrelation import autocorrelation, effective_steps
from .canaries import medians_ms, normalized_x, shared_key
from .drift import Drift, drift_of
from .rates import Floats, step_times_ms, windowed
from .smallest_tolerance import (
    Held,
    interval_of_deviation,
    smallest_with_pairs,
    smallest_with_sessions,
)
from .spread import NO_SPREAD, about_mean, deviation, pooled, slowness

MOST_SESSIONS = 3
FEWEST_SESSIONS = 3
FEWEST_JOBS = 3
"""Jobs that can tell the variance between them; ``ASSUMED_BETWEEN`` s² is taken for fewer."""

ASSUMED_BETWEEN = 1.0


@dataclass(frozen=True)
class Steps:
    """Medians over the sessions: autocorrelation of neighbouring steps, how many independent steps
    their ``steps`` are worth, and the drift; ``drifting`` sessions drift by more than its error."""

    steps: int
    neighbours: float
    independent: float
    drift_pct: float
    drifting: int


@dataclass(frozen=True)
class Calibration:
    """What the sessions of one workload tell. Spreads are standard deviations of x (0.01 is 1 %).

    ``jobs`` are the rates in tok/s by job. ``spread`` is that within jobs, ``spread_ci`` its 95 %
    interval; ``between`` the variance between jobs in units of its square, ``None`` for one job.
    ``canary_kept`` is the part of the variance within jobs that dividing by ``canary`` leaves.
    ``warmup_steps`` are the least and most found, ``warmup_s`` and ``session_s`` medians in
    seconds, the latter with everything that a session takes. ``first`` and ``settled`` are the
    smallest tolerances with up to 1, 2, 3 sessions for a baseline of one job and of many, ``pairs``
    that of an A/B; they are for ``spread``, or the smallest spread that is believed.
    """

    nodeid: str
    tolerance: float | None
    jobs: list[list[float]]
    unsteady: int
    spread: float
    spread_ci: tuple[float, float]
    between: float | None
    assumed_between: float
    canary: str | None
    canary_kept: float | None
    steps: Steps | None
    warmup_steps: tuple[int, int]
    warmup_s: float
    session_s: float
    first: list[Held | None]
    settled: list[Held | None]
    pairs: Held | None


def calibrate(runs: Sequence[RunRecord], session_s: float) -> Calibration | str:
    """Return the calibration of ``runs``, all of one workload and machine; a string says why none.

    Jobs are told apart by the ``job`` of each run; a session that never became steady is left out.
    """
    steady = [run for run in runs if run.warmup.steady]
    by_job: dict[str, list[RunRecord]] = {}
    for run in steady:
        by_job.setdefault(run.job, []).append(run)
    jobs = list(by_job.values())
    x = [[slowness(run.timing.tok_s) for run in job] for job in jobs]
    within = _within(x)
    if within.degrees < FEWEST_SESSIONS - 1:
        return (
            f"{len(steady)} of {len(runs)} sessions became steady; a spread needs at least "
            f"{FEWEST_SESSIONS} of one job"
        )
    between = _between(x, within)
    assumed = between if between is not None and len(jobs) >= FEWEST_JOBS else ASSUMED_BETWEEN
    believed = deviation(within)
    canary, kept = _canary(jobs, within)
    warmups = [run.warmup.steps for run in steady]
    return Calibration(
        nodeid=runs[0].workload.nodeid,
        tolerance=runs[0].budget.tolerance,
        jobs=[[run.timing.tok_s for run in job] for job in jobs],
        unsteady=len(runs) - len(steady),
        spread=sqrt(within.variance),
        spread_ci=interval_of_deviation(sqrt(within.variance), within.degrees),
        between=between,
        assumed_between=assumed,
        canary=canary,
        canary_kept=kept,
        steps=_steps(steady),
        warmup_steps=(min(warmups), max(warmups)),
        warmup_s=float(np.median([run.warmup.seconds for run in steady])),
        session_s=session_s,
        first=_tolerances(believed, assumed, settled=False),
        settled=_tolerances(believed, assumed, settled=True),
        pairs=smallest_with_pairs(believed),
    )


def stepping_s(run: RunRecord) -> float:
    """Return how long a session warmed up and stepped, in seconds."""
    return run.warmup.seconds + (run.timing.end_ns - run.timing.start_ns) / 1e9


def _tolerances(spread: float, between: float, *, settled: bool) -> list[Held | None]:
    return [
        smallest_with_sessions(spread, most, settled=settled, between_jobs=between)
        for most in range(1, MOST_SESSIONS + 1)
    ]


def _within(x: Sequence[Sequence[float]]) -> Spread:
    """Return the spread of sessions about their job's mean."""
    return reduce(pooled, map(about_mean, x), NO_SPREAD)


def _between(x: Sequence[Sequence[float]], within: Spread) -> float | None:
    """Return the variance between jobs in units of that within, never negative."""
    if len(x) < 2:
        return None
    sizes = np.array([len(job) for job in x], dtype=np.float64)
    means = np.array([np.mean(job) for job in x])
    total = sizes.sum()
    spread = float(sizes @ (means - sizes @ means / total) ** 2) / (len(x) - 1)
    size = (total - float(sizes @ sizes) / total) / (len(x) - 1)
    return max(0.0, float((spread - within.variance) / size) / deviation(within) ** 2)


def _canary(jobs: Sequence[Sequence[RunRecord]], within: Spread) -> tuple[str | None, float | None]:
    medians = [[medians_ms(run.canaries) for run in job] for job in jobs]
    flat: list[Mapping[str, float]] = [one for job in medians for one in job]
    key = shared_key(flat)
    if key is None or within.variance == 0:
        return key, None
    normalized = [
        [normalized_x(run.timing.tok_s, ms, key) for run, ms in zip(job, found)]
        for job, found in zip(jobs, medians)
    ]
    return key, _within(normalized).variance / within.variance


def _steps(runs: Sequence[RunRecord]) -> Steps | None:
    """Return what neighbouring steps have in common; the first counting worker stands for all."""
    counting = [windowed(run.marks) for run in runs]
    series = [step_times_ms(workers[0]) for workers in counting if workers]
    told = [found for found in map(_of_steps, series) if found is not None]
    if not told:
        return None
    neighbours, independent, drifts = zip(*told)
    return Steps(
        steps=int(np.median([len(one) for one in series])),
        neighbours=float(np.median(neighbours)),
        independent=float(np.median(independent)),
        drift_pct=float(np.median([one.pct for one in drifts])),
        drifting=sum(abs(one.pct) > one.half_width_pct for one in drifts),
    )


def _of_steps(step_ms: Floats) -> tuple[float, float, Drift] | None:
    independent = effective_steps(step_ms)
    drift = drift_of(step_ms) if independent is not None else None
    if independent is None or drift is None:
        return None
    return float(autocorrelation(step_ms)[1]), independent, drift
