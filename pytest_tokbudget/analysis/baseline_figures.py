"""The figures of a stored baseline that a person wants to see."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, fsum, sqrt

from ..errors import UnreadableError
from ..records.baseline import Baseline
from .settled import baseline_spread
from .spread import slowness


@dataclass(frozen=True)
class BaselineFigures:
    """``tok_s`` is the anchor's geometric mean; ``spread_pct`` one standard deviation of a session,
    as a percentage of its rate, from ``degrees`` degrees of freedom over ``jobs`` jobs."""

    tok_s: float
    spread_pct: float
    degrees: float
    jobs: int


def baseline_figures(baseline: Baseline) -> BaselineFigures:
    """Return the figures of ``baseline``.

    Raises ``UnreadableError`` for an empty anchor or a rate that is not above 0.
    """
    stored = [*baseline.anchor, *baseline.appended]
    if not baseline.anchor or any(not one.tok_s > 0 for one in stored):
        raise UnreadableError(
            f"the baseline of {baseline.workload.identity} has no usable rates: expected an anchor "
            "of sessions with tok_s above 0; restore the file from git, or refresh it "
            "(--tokbudget-refresh)"
        )
    spread = baseline_spread(baseline)
    x = [slowness(one.tok_s) for one in baseline.anchor]
    return BaselineFigures(
        tok_s=exp(-fsum(x) / len(x)),
        spread_pct=100 * expm1(sqrt(spread.variance)),
        degrees=spread.degrees,
        jobs=spread.jobs,
    )
