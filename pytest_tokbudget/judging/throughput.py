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
from pytest_tokbudget.analysis.settled import (
    SETTLED_DEGREES,
    SETTLED_JOBS,
    SETTLED_JOBS_TERM,
)
from pytest_tokbudget.records.baseline import Spread
from pytest_tokbudget.records.verdict import Outcome

from .ruling import Ruling
from .wording import change, count, interval, must_show, percent, share

MOST_SESSIONS_ADVISED = 12
"""More sessions than this in one job are no advice: other remedies cost less."""


def rule_on(anchor: Anchor, seen: Look, *, tolerance: float, delta: float, lost: int) -> Ruling:
    """Return the ruling of one look; ``lost`` sessions never became steady."""
    if seen.outcome is Outcome.PASS:
        sentences = _passed(seen, tolerance)
    elif seen.outcome is Outcome.IMPROVED:
        sentences = _improved(seen)
    elif seen.outcome is Outcome.REGRESSED:
        sentences = _regressed(seen, tolerance)
    else:
        sentences = _undecided(anchor, seen, tolerance, delta, lost)
    return Ruling(seen.outcome, sentences, wants_more=not seen.settled)


def _passed(seen: Look, tolerance: float) -> tuple[str, ...]:
    sentence = (
        f"{change(seen.d)}, tolerance {share(tolerance)}: code "
        f"{share(must_show(tolerance))} slower would look this good in fewer than 1 run in 100."
    )
    return (sentence,)


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


def _undecided(
    anchor: Anchor, seen: Look, tolerance: float, delta: float, lost: int
) -> tuple[str, ...]:
    left_out = lost + (seen.set_aside is not None)
    return _doubt(seen, tolerance, delta, left_out), _remedy(anchor, seen, delta, left_out)


def _doubt(seen: Look, tolerance: float, delta: float, left_out: int) -> str:
    shown = f"99 % interval {interval(seen.d, seen.half_width)}"
    against = f"{change(seen.d)}, tolerance {share(tolerance)}"
    if seen.d > delta and seen.d > seen.half_width:
        if len(seen.counted) < 2:
            return f"{against}: one slow session alone fails no test."
        return f"{against}, but too close, or not in every session: {shown}."
    if left_out and len(seen.counted) < 2 and seen.d + seen.half_width < 2 * delta:
        return f"{against}: with a session left out, one alone passes no test."
    return f"{change(seen.d)}, {shown}: too uncertain for a tolerance of {share(tolerance)}."


def _remedy(anchor: Anchor, seen: Look, delta: float, left_out: int) -> str:
    needed = sessions_needed(anchor, seen, delta, MOST_SESSIONS_ADVISED)
    if needed is not None:
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
    helps = "An A/B on this machine (--tokbudget-against)"
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
