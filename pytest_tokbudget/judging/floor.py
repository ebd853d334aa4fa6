"""The floor: an absolute rate, judged by the new sessions alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np

from pytest_tokbudget.records.verdict import Outcome

from .ruling import Ruling
from .wording import count, percent, rate


def judge_floor(x: Sequence[float], floor_tok_s: float, *, least: int, may_measure: bool) -> Ruling:
    """Judge ``x`` (−log tok/s of the counted sessions) against ``floor_tok_s``.

    At or above it in each: PASS, once ``least`` sessions count. Below it in each of at least two:
    REGRESSED. Else another session while one may be measured, and then their mean decides.
    """
    rates = [exp(-value) for value in x]
    # exp(log(r)) may miss r by a rounding error; a rate equal to the floor holds it.
    below = [value < floor_tok_s * (1 - 1e-12) for value in rates]
    if not any(below) and len(x) >= least:
        return Ruling(Outcome.PASS, (_sentence(x, floor_tok_s),))
    if all(below) and len(x) >= 2:
        return Ruling(
            Outcome.REGRESSED,
            (_sentence(x, floor_tok_s, f", in each of {count(len(x), 'session')}"),),
        )
    mean_holds = exp(-float(np.mean(x))) >= floor_tok_s * (1 - 1e-12)
    outcome = Outcome.PASS if mean_holds and len(x) >= least else Outcome.REGRESSED
    if mean_holds and len(x) < least:
        outcome = Outcome.INCONCLUSIVE
    if len(x) == 1:
        suffix = " in the only session that counts"
    else:
        suffix = f" on the mean of {count(len(x), 'session')}, {sum(below)} of them below"
    return Ruling(outcome, (_sentence(x, floor_tok_s, suffix),), wants_more=may_measure)


def _sentence(x: Sequence[float], floor_tok_s: float, suffix: str = "") -> str:
    now = exp(-float(np.mean(x)))
    gap = 100 * abs(now / floor_tok_s - 1)
    if gap < 0.005:
        return f"{rate(now)}, at the floor of {rate(floor_tok_s)}{suffix}."
    side = "above" if now > floor_tok_s else "below"
    return f"{rate(now)}, {percent(gap)} {side} the floor of {rate(floor_tok_s)}{suffix}."
