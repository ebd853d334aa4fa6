"""The drift of synthetic sessions whose drift is known."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.analysis.drift import drift_of


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_interval_holds_the_true_drift(correlation: float) -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(1_000):
        noise = rng.standard_normal(400)
        for step in range(1, 400):
            noise[step] += correlation * noise[step - 1]
        found = drift_of(100.0 + np.linspace(-2.5, 2.5, 400) + noise)
        assert found is not None
        held += abs(found.pct - 5.0) <= found.half_width_pct

    assert 0.9 <= held / 1_000 <= 0.99


def test_too_few_or_equal_steps_tell_no_drift() -> None:
    assert drift_of(np.arange(5.0)) is None
    assert drift_of(np.full(100, 3.0)) is None
