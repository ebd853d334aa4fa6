"""The mean rate against the baseline: the rule of ``analysis.looks``, put into words."""

from __future__ import annotations

from math import expm1

from pytest_tokbudget.analysis.looks import (
    Anchor,
    Look,
    decides,
    half_width,
    sessions_needed,
)
from pytest_tokbudget.analysis.spread import (
    SETTLED_DEGREES,
    SETTLED_JOBS,
    SETTLED_JOBS_TERM,
)
from pytest_tokbudget.records.baseline import Spread
from pytest_tokbudget.records.verdict import Outcome

from .ruling import Ruling
from .wording import change, count, interval, percent, share

MOST_SESSIONS_ADVISED = 12
"""More sessions than this in one job are no advice: other remedies cost less."""


def rule_on(
    anchor: Anchor, seen: Look, *, tolerance: float, delta: float, remaining: int
) -> Ruling:
    """Return the ruling of one look; ``remaining`` sessions may still be measured."""
    if seen.outcome is Outcome.PASS:
        return Ruling(seen.outcome, (_passed(seen, tolerance),))
    if seen.outcome is Outcome.IMPROVED:
        return Ruling(seen.outcome, _improved(seen))
    if seen.outcome is Outcome.REGRESSED:
        return Ruling(seen.outcome, _regressed(seen, tolerance))
    sentences = _undecided(anchor, seen, tolerance, delta)
    return Ruling(seen.outcome, sentences, wants_more=remaining > 0)


def _passed(seen: Look, tolerance: float) -> str:
    return (
        f"{change(seen.d)}, tolerance {share(tolerance)}: code {share(2 * tolerance)} slower would "
        "look this good in fewer than 1 run in 100."
    )


def _improved(seen: Look) -> tuple[str, ...]:
    return (
        f"{change(seen.d)} (99 % interval {interval(seen.d, seen.half_width)}).",
        'Make it the new baseline, or a later slow-down may hide in it: --tokbudget-refresh "why".',
    )


def _regressed(seen: Look, tolerance: float) -> tuple[str, ...]:
    sessions = count(len(seen.counted), "session")
    first = (
        f"{change(seen.d)}, tolerance {share(tolerance)}: unchanged code would look this slow in "
        "fewer than 1 run in 100."
    )
    second = (
        f"Each of {sessions} alone is slower than the baseline; "
        f"99 % interval {interval(seen.d, seen.half_width)}."
    )
    return first, second


def _undecided(anchor: Anchor, seen: Look, tolerance: float, delta: float) -> tuple[str, ...]:
    first = (
        f"{change(seen.d)}, 99 % interval {interval(seen.d, seen.half_width)}: "
        f"too uncertain for a tolerance of {share(tolerance)}."
    )
    if seen.d > delta and seen.d > seen.half_width and len(seen.counted) < 2:
        first = f"{change(seen.d)}, tolerance {share(tolerance)}: one slow session fails no test."
    elif seen.d > delta and seen.d > seen.half_width:
        first = (
            f"{change(seen.d)}, tolerance {share(tolerance)}, but not in every session: "
            f"99 % interval {interval(seen.d, seen.half_width)}."
        )
    return first, _remedy(anchor, seen, delta)


def _remedy(anchor: Anchor, seen: Look, delta: float) -> str:
    needed = sessions_needed(anchor, seen, delta, MOST_SESSIONS_ADVISED)
    if needed is not None:
        left_out = 1 if seen.set_aside is not None else 0
        return (
            f"{count(needed, 'session')} that lie like these would decide "
            f"(--tokbudget-sessions 1:{needed + left_out})."
        )
    settled = Anchor(anchor.mean, anchor.sessions, anchor.spread, SETTLED_JOBS_TERM)
    spread = Spread(
        variance=seen.spread.variance, degrees=max(seen.spread.degrees, SETTLED_DEGREES)
    )
    useful = anchor.between > SETTLED_JOBS_TERM and decides(
        settled, spread, seen.d, delta, MOST_SESSIONS_ADVISED // 4
    )
    helps = "An A/B on this machine"
    if useful:
        helps += f", or a baseline that rests on at least {SETTLED_JOBS} jobs,"
    return (
        "More sessions cannot help: those of one job share its mood (smallest change they can "
        f"show: {_limit(anchor, seen)}). {helps} can."
    )


def _limit(anchor: Anchor, seen: Look) -> str:
    """The change that even ``MOST_SESSIONS_ADVISED`` sessions would need to be seen."""
    spread = Spread(
        variance=seen.spread.variance, degrees=seen.spread.degrees + MOST_SESSIONS_ADVISED
    )
    return percent(-100 * expm1(-half_width(anchor, spread, MOST_SESSIONS_ADVISED)))
