"""What other gates would say of the same steps. Each rule sees one stored and one new session.

- pytest-benchmark ``--benchmark-compare-fail=mean:5%``: ratio of the means.
- Megatron-LM goldens: median of steps 5–20 within ±5 % of the stored one.
- Mann-Whitney over steps at 1 %, one-sided (asv compares samples this way).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter
from scipy.stats import mannwhitneyu

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
STEP_SPREAD = 0.02
STEPS = 200


def steps(rng: np.random.Generator, x: Floats, correlation: float) -> Floats:
    """Return step times (N, 200) of sessions ``x`` (N,): AR(1) noise of 2 % about exp(x)."""
    noise = rng.standard_normal((len(x), STEPS))
    noise[:, 1:] *= np.sqrt(1 - correlation**2)
    wander = lfilter([1.0], [1.0, -correlation], noise, axis=1)
    return np.exp(x[:, None] + STEP_SPREAD * np.asarray(wander))


def mean_5_percent(old: Floats, new: Floats) -> Flags:
    """pytest-benchmark's ``mean:5%``."""
    return np.asarray(new.mean(axis=1) > 1.05 * old.mean(axis=1))


def megatron_golden(old: Floats, new: Floats) -> Flags:
    """Megatron-LM's golden values: two-sided, an improvement fails as well."""
    ratio = np.median(new[:, 4:20], axis=1) / np.median(old[:, 4:20], axis=1)
    return np.asarray(np.abs(ratio - 1) > 0.05)


def mann_whitney(old: Floats, new: Floats) -> Flags:
    """Slower by a rank test that takes steps for independent samples."""
    return np.asarray(mannwhitneyu(new, old, alternative="greater", axis=1).pvalue < 0.01)


RULES = {
    "pytest-benchmark mean:5%": mean_5_percent,
    "Megatron median ±5 %": megatron_golden,
    "Mann-Whitney over steps": mann_whitney,
}
