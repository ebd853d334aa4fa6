"""The rule of an A/B: pairs of fresh workers, REF and HEAD, looked at one after the other.

One pair is one unit. Its d is the difference of x = −log tok/s of its two sides, which stepped in
alternate short blocks: what the host did to one it did to the other. What remains is what differs
from process to process (memory layout, hashing, thread placement: about 2 % on a launch-bound
step), and only further pairs average that out. At the look after P pairs

    h = t(1 − LOOK_ALPHA, P − 1) · s / √P

with s the standard deviation of d about its mean (Student's one-sample t on paired differences).
Unchanged code (d = 0) must not fail, and code slower by 2δ must not pass; in between the estimate
decides, as in ``analysis.looks``. Nine looks at ``LOOK_ALPHA`` each spend at most 2 % (Bonferroni);
they overlap so much that less than half of it is spent (``benchmarks/against.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from pytest_tokbudget.records.verdict import Outcome

from .spread import about_mean, deviation, student_quantile

LOOK_ALPHA = 0.0022
"""One-sided error of each look."""
FEWEST_PAIRS = 4
MOST_PAIRS = 12
INTERVAL_LEVEL = 0.995
"""Of the interval that is shown: two-sided 99 %."""


@dataclass(frozen=True)
class PairLook:
    """One look at the pairs so far; ``d``, ``half_width`` and ``detectable`` are in x.

    ``outcome`` is PASS, IMPROVED, REGRESSED or INCONCLUSIVE; ``half_width`` is of the 99 %
    interval, ``None`` for a single pair; ``detectable`` is the smallest d that pairs lying like
    these would show as REGRESSED at this look.
    """

    outcome: Outcome
    d: float
    half_width: float | None
    detectable: float | None


def pair_half_width(differences: Sequence[float], level: float = 1 - LOOK_ALPHA) -> float:
    """Return h of at least two ``differences``."""
    spread = about_mean(differences)
    error = deviation(spread) / sqrt(len(differences))
    return student_quantile(level, spread.degrees) * error


def look_at_pairs(differences: Sequence[float], delta: float) -> PairLook:
    """Judge ``differences`` (x of HEAD less x of REF, a pair each; at least one).

    ``delta`` is δ = −ln(1 − tolerance). Fewer than ``FEWEST_PAIRS`` decide nothing.
    """
    d = float(np.mean(differences))
    if len(differences) < 2:
        return PairLook(Outcome.INCONCLUSIVE, d, None, None)
    h = pair_half_width(differences)
    outcome = Outcome.INCONCLUSIVE
    if len(differences) >= FEWEST_PAIRS:
        if d <= delta and d + h < 2 * delta:
            outcome = Outcome.IMPROVED if d + h < 0 and d <= -delta else Outcome.PASS
        elif d > delta and d > h:
            outcome = Outcome.REGRESSED
    shown = pair_half_width(differences, INTERVAL_LEVEL)
    return PairLook(outcome, d, shown, max(delta, h))


def pairs_needed(differences: Sequence[float], delta: float, limit: int) -> int | None:
    """Return how many pairs in all would decide, if further ones lie like these; ``None`` when
    more than ``limit`` would."""
    if len(differences) < 2:
        return None
    d, error = float(np.mean(differences)), deviation(about_mean(differences))
    for count in range(max(FEWEST_PAIRS, len(differences) + 1), limit + 1):
        h = student_quantile(1 - LOOK_ALPHA, count - 1) * error / sqrt(count)
        if (d <= delta and d + h < 2 * delta) or (d > delta and d > h):
            return count
    return None
