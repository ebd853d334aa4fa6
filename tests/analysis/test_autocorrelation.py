"""Effective steps against the known answer of an AR(1) series, ρ against a plain loop."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from pytest_tokbudget.analysis.autocorrelation import autocorrelation, effective_steps


def ar1(correlation: float, n: int, seed: int) -> npt.NDArray[np.float64]:
    noise = np.random.default_rng(seed).standard_normal(n)
    return np.asarray(lfilter([1.0], [1.0, -correlation], noise)) + 10


@given(st.lists(st.floats(1, 100), min_size=2, max_size=40, unique=True))
@settings(max_examples=50)
def test_autocorrelation_is_the_sum_of_products(step_ms: list[float]) -> None:
    mean = sum(step_ms) / len(step_ms)
    centred = [value - mean for value in step_ms]
    total = sum(value * value for value in centred)
    for lag, rho in enumerate(autocorrelation(np.array(step_ms))):
        products = sum(centred[i] * centred[i + lag] for i in range(len(centred) - lag))
        assert rho == pytest.approx(products / total, abs=1e-6)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_effective_steps_of_an_ar1_series(correlation: float) -> None:
    n = 20_000
    expected = n * (1 - correlation) / (1 + correlation)
    found = [effective_steps(ar1(correlation, n, seed)) for seed in range(5)]
    assert np.mean([one for one in found if one is not None]) == pytest.approx(expected, rel=0.1)


def test_never_more_than_the_steps_themselves() -> None:
    alternating = np.array([1.0, 2.0] * 50)
    assert effective_steps(alternating) == 100


def test_constant_or_few_steps_tell_nothing() -> None:
    assert effective_steps(np.full(50, 3.0)) is None
    assert effective_steps(np.arange(7.0)) is None
    with pytest.raises(ValueError, match="50 equal values"):
        autocorrelation(np.full(50, 3.0))
