"""How much slower the steps of one session become from its first to its last. For diagnosis."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from .autocorrelation import effective_steps
from .spread import student_quantile

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Drift:
    """Change of the step time from first to last step, in % of the mean; ± is two-sided 95 %."""

    pct: float
    half_width_pct: float


def drift_of(step_ms: Floats) -> Drift | None:
    """Return the drift of ``step_ms`` (n,), by the least-squares line through it.

    The error of the slope is widened for steps that are alike with their neighbours: with n_e
    independent steps left in the residuals, it is √(n / n_e) of that of independent ones (Bartlett
    1935). ``None`` where the residuals cannot tell n_e, or leave no degree of freedom.
    """
    n = len(step_ms)
    if n < 2:
        return None
    t = np.linspace(-0.5, 0.5, n)
    centred = step_ms - step_ms.mean()
    change = float(t @ centred / (t @ t))
    residuals = centred - change * t
    independent = effective_steps(residuals)
    if independent is None or independent <= 3:
        return None
    variance = float(residuals @ residuals) / (n - 2)
    error = sqrt(variance / float(t @ t) * n / independent)
    half = student_quantile(0.975, independent - 2) * error
    mean = float(step_ms.mean())
    return Drift(pct=100 * change / mean, half_width_pct=100 * half / mean)
