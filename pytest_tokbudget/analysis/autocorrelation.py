"""How many independent steps the steps of one session are worth. For diagnosis only.

No verdict rests on it: sessions, not steps, are the unit of judging.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_STEPS = 8


def autocorrelation(step_ms: Floats) -> Floats:
    """Return ρ at lags 0 … n − 1 of ``step_ms`` (n,), biased estimate (divided by n throughout).

    Raises ``ValueError`` for a constant series, which has none.
    """
    n = len(step_ms)
    centred = step_ms - step_ms.mean()
    total = float(centred @ centred)
    if total == 0.0:
        raise ValueError(f"{n} equal values have no autocorrelation")
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, size)) ** 2
    return np.asarray(np.fft.irfft(spectrum, size)[:n] / total)


def effective_steps(step_ms: Floats) -> float | None:
    """Return n / (1 + 2 Σ ρ): the independent steps whose mean would be as certain.

    The sum ends where the sum of a pair of neighbouring lags is no longer positive (Geyer 1992,
    *Practical Markov Chain Monte Carlo*, the initial positive sequence). At most n. ``None`` for
    fewer than ``FEWEST_STEPS`` steps, or steps that are all equal: they cannot tell.
    """
    n = len(step_ms)
    if n < FEWEST_STEPS or np.ptp(step_ms) == 0:
        return None
    rho = autocorrelation(np.asarray(step_ms, dtype=np.float64))
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    positive = pairs[: ends[0]] if len(ends) else pairs
    inflation = 2 * float(positive.sum()) - 1
    return n / max(inflation, 1.0)
