"""The rule of an A/B for many runs at once: ``analysis.pairs`` with a leading axis N.

``tests/benchmarks/test_against_rule.py`` proves it equal to the function that judges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from .pairs import FEWEST_PAIRS, LOOK_ALPHA, MOST_PAIRS
from .spread import SMALLEST_SPREAD

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNDECIDED, PASSED, REGRESSED = range(3)


def decide(differences: Floats, delta: float) -> tuple[Ints, Ints]:
    """Return outcome and pairs used of each row of ``differences`` (N, MOST_PAIRS).

    IMPROVED counts as passed.
    """
    outcome = np.zeros(len(differences), np.int64)
    used = np.full(len(differences), MOST_PAIRS, np.int64)
    for pairs in range(FEWEST_PAIRS, MOST_PAIRS + 1):
        x = differences[:, :pairs]
        d = x.mean(axis=1)
        s = np.maximum(x.std(axis=1, ddof=1), SMALLEST_SPREAD)
        h = stdtrit(pairs - 1, 1 - LOOK_ALPHA) * s / np.sqrt(pairs)
        still = outcome == UNDECIDED
        good = still & (d <= delta) & (d + h < 2 * delta)
        bad = still & (d > delta) & (d > h)
        used[good | bad] = pairs
        outcome[good], outcome[bad] = PASSED, REGRESSED
    return outcome, used
