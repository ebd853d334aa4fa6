"""What the canaries of sessions say about the machine: was it as fast as the baseline's?

c = log of the median milliseconds of one canary in one session: larger is a slower machine. A key
names a canary and where it ran (``"interleaved/tiny_step cuda:0"``, ``"around/host_loop"``):
readings inside the pass and around it find the caches in another state, and are never compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from msgspec.structs import replace

from pytest_tokbudget.records.baseline import Baseline, StoredSession
from pytest_tokbudget.records.run import CanarySeries

from .settled import counted_appended
from .spread import about_mean, deviation, pooled_or_larger, slowness, student_quantile

FEWEST_SESSIONS = 3
FEWEST_TO_FOLLOW = 10
"""Sessions of a baseline that can show whether a workload follows its canary."""

SLOPES = (0.5, 1.5)
KEPT_VARIANCE = 0.5
"""A canary helps where dividing by it leaves at most this part of the variance of sessions."""

SHIFT_LEVEL = 0.95

_MATTERS = (
    "interleaved/tiny_step",
    "interleaved/host_loop",
    "around/device_matmul",
    "around/tiny_step",
    "around/host_loop",
)
"""First what ran inside the pass. A pass on a device that was not cut had work queued up ahead of
the device, so there the device's own canary matters."""


@dataclass(frozen=True)
class Shift:
    """How much slower the canary ``key`` ran than at the baseline, in c; negative is faster.

    ``doubt`` is the half width that the canary's own spread leaves (one-sided 95 %).
    """

    key: str
    c: float
    doubt: float


def medians_ms(series: Iterable[CanarySeries]) -> dict[str, float]:
    """Return the median duration in ms of each canary by key; readings of 0 are left out."""
    readings: dict[str, list[int]] = {}
    for one in series:
        where = "interleaved" if one.where == "interleaved" else "around"
        key = f"{where}/{one.name}" + (f" {one.device}" if one.device else "")
        readings.setdefault(key, []).extend(each for each in one.durations_ns if each > 0)
    return {key: float(np.median(each)) / 1e6 for key, each in readings.items() if each}


def key_that_matters(baseline: Baseline, new: Sequence[Mapping[str, float]]) -> str | None:
    """Return the key to judge by among those that every session of both sides has, else None."""
    sides = [*(session.canaries_ms for session in baseline.anchor), *new]
    if len(baseline.anchor) < FEWEST_SESSIONS or not new:
        return None
    return shared_key(sides)


def shared_key(sessions: Sequence[Mapping[str, float]]) -> str | None:
    """Return the key that matters most among those that every one of ``sessions`` (≥ 1) has."""
    shared = [key for key in sessions[0] if all(key in one for one in sessions)]
    return next((key for kind in _MATTERS for key in shared if key.split(" ")[0] == kind), None)


def shift(baseline: Baseline, new: Sequence[Mapping[str, float]], key: str) -> Shift:
    """Return how the canary ``key`` of the ``new`` sessions lies to that of the anchor."""
    old_c = [log(session.canaries_ms[key]) for session in baseline.anchor]
    new_c = [log(one[key]) for one in new]
    spread = pooled_or_larger(about_mean(old_c), about_mean(new_c))
    doubt = student_quantile(SHIFT_LEVEL, spread.degrees) * deviation(spread)
    return Shift(
        key=key,
        c=float(np.mean(new_c) - np.mean(old_c)),
        doubt=doubt * sqrt(1 / len(old_c) + 1 / len(new_c)),
    )


def follows(baseline: Baseline, key: str) -> bool:
    """Return whether the baseline's own sessions prove that the workload's rate follows ``key``.

    At least ``FEWEST_TO_FOLLOW`` sessions; the regression of x on c has a slope near 1; and x − c
    has at most half the variance of x. A workload that waits for its data does not follow the
    processor, however much that one varies.
    """
    sessions = [*baseline.anchor, *counted_appended(baseline)]
    points = [
        (slowness(one.tok_s), log(one.canaries_ms[key]))
        for one in sessions
        if key in one.canaries_ms
    ]
    if not key.startswith("interleaved/") or len(points) < FEWEST_TO_FOLLOW:
        return False
    x, c = np.asarray(points).T
    if float(np.var(c)) == 0:
        return False
    slope = float(np.cov(x, c)[0, 1] / np.var(c, ddof=1))
    kept = float(np.var(x - c)) <= KEPT_VARIANCE * float(np.var(x))
    return SLOPES[0] <= slope <= SLOPES[1] and kept


def normalized_baseline(baseline: Baseline, key: str) -> Baseline:
    """Return ``baseline`` with each rate multiplied by its session's canary, in tokens per canary.

    Appended sessions without the canary are left out, and so is what earlier refreshes learned: it
    is a spread of rates.
    """
    return replace(
        baseline,
        anchor=[_normalized(one, key) for one in baseline.anchor],
        appended=[_normalized(one, key) for one in baseline.appended if key in one.canaries_ms],
        learned=None,
    )


def normalized_x(tok_s: float, canaries_ms: Mapping[str, float], key: str) -> float:
    """Return x − c of one session: −log of its tokens per canary."""
    return slowness(tok_s) - log(canaries_ms[key])


def _normalized(session: StoredSession, key: str) -> StoredSession:
    return replace(session, tok_s=exp(-normalized_x(session.tok_s, session.canaries_ms, key)))
