"""What a stored baseline says twice, and has to say alike both times.

Nothing here tells who is right: an edit by hand, a merge, or a file that was put together from two.
What stands in a file once only (canaries, shares of waiting, a spread learned from several jobs)
can be edited unseen, but for the review of the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import expm1, log1p, sqrt

from ..analysis.settled import LEARNED_DEGREES
from ..analysis.spread import (
    about_mean,
    deviation,
    pooled,
    pooled_or_larger,
    slowness,
    student_quantile,
)
from ..records.baseline import Baseline, RefreshEntry, Spread
from .stored_rates import rate_contradictions

_ALL_OR_NONE = ("usable_cores", "counters", "tokens")
"""What one refresh stores of each of its sessions, or (in an older version) of none."""

_SAME_WIDTH = 1e-3
"""Of an interval computed from rates of seven digits, whose spread is 0.25 % or more."""


def contradictions(baseline: Baseline) -> Iterator[str]:
    """Say what in ``baseline`` cannot be true together. Each figure by itself must be possible."""
    if not baseline.anchor or not baseline.log:
        name = "log" if baseline.anchor else "anchor"
        yield f"{name} is empty, expected one entry or more"
        return
    yield from rate_contradictions(baseline)
    yield from _cores(baseline)
    yield from _kept_of_all(baseline)
    yield from _learned(baseline)


def _cores(baseline: Baseline) -> Iterator[str]:
    """All sessions are of the machine class; of a pool, whose hosts may differ, the anchor's."""
    cores = baseline.machine_class.fields.get("usable_cores")
    parts = [("anchor", baseline.anchor)]
    if not baseline.machine_class.pool:
        parts.append(("appended", baseline.appended))
    for part, sessions in parts:
        for index, one in enumerate(sessions):
            if None not in (cores, one.usable_cores) and str(one.usable_cores) != cores:
                yield (
                    f"{part}[{index}].usable_cores is {one.usable_cores}, expected {cores} as in "
                    "machine_class.fields"
                )


def _kept_of_all(baseline: Baseline) -> Iterator[str]:
    for name in _ALL_OR_NONE:
        missing = [at for at, one in enumerate(baseline.anchor) if getattr(one, name) is None]
        if 0 < len(missing) < len(baseline.anchor):
            yield (
                f"anchor[{missing[0]}].{name} is null, expected a value as in the other sessions "
                "of the anchor"
            )


def _learned(baseline: Baseline) -> Iterator[str]:
    """What was learned is of the baseline that the last refresh replaced, if it was comparable."""
    learned, last = baseline.learned, baseline.log[-1]
    if learned is None:
        if last.old_tok_s is not None:
            yield (
                "learned is null, expected the spread of the baseline that log[-1] replaced "
                f"(its old_tok_s is {last.old_tok_s})"
            )
        return
    if last.old_tok_s is None:
        yield "learned is a spread, expected null: log[-1] replaced no baseline (no old_tok_s)"
    elif learned.degrees > LEARNED_DEGREES:
        yield f"learned.degrees is {learned.degrees}, expected {LEARNED_DEGREES:g} or less"
    elif learned.jobs == 1 and learned.degrees < LEARNED_DEGREES:
        yield from _first_spread(baseline, learned, last)


def _first_spread(baseline: Baseline, learned: Spread, last: RefreshEntry) -> Iterator[str]:
    """Hold what was learned from one job against the interval of the log, which rests on it.

    The baseline replaced was one anchor of ``degrees + 1`` sessions then, and nothing else.
    """
    x = [slowness(one.tok_s) for one in baseline.anchor]
    stored = _half_width(last)
    root = sqrt(1 / (learned.degrees + 1) + 1 / len(x))
    new = about_mean(x)
    # The two lie apart only where an F test found the spreads unlike; digits that were rounded
    # could turn it, so that both are accepted.
    spreads = (pooled(learned, new), pooled_or_larger(learned, new))
    expected = [
        student_quantile(0.995, one.degrees) * deviation(one) * root
        for one in spreads
        if one.degrees > 0
    ]
    if stored is None or not expected:
        if stored is not None or expected:
            yield "log[-1].change_ci_pct is null, expected the interval that learned gives"
    elif not any(abs(stored - one) <= _SAME_WIDTH * one for one in expected):
        yield (
            f"learned.variance is {learned.variance:g}, expected what gives the interval of "
            f"log[-1].change_ci_pct: half of it is {_percent(stored)} there, and "
            f"{_percent(expected[-1])} by learned and anchor"
        )


def _half_width(entry: RefreshEntry) -> float | None:
    """Half the width of the interval, in log tok/s."""
    if entry.change_ci_pct is None or entry.change_ci_pct[0] <= -100:
        return None
    low, high = entry.change_ci_pct
    return (log1p(high / 100) - log1p(low / 100)) / 2


def _percent(width: float) -> str:
    return f"{100 * expm1(width):.4g} %"
