from __future__ import annotations

import math

import pytest

from pytest_tokbudget.errors import RefreshRefusedError
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.storing.noise import check_noise, narrowest_tolerance

from .builders import baseline, sessions

# t(0.995, 30) and t(0.995, 4), from printed tables.
T_30, T_4 = 2.7500, 4.6041


def _spread(deviation: float, count: int = 5) -> list[float]:
    """Rates whose log has exactly this standard deviation."""
    half = deviation * math.sqrt((count - 1) / (count - count % 2))
    signs = [1, -1] * (count // 2) + [0] * (count % 2)
    return [1000 * math.exp(sign * half) for sign in signs]


@pytest.mark.parametrize(("settled", "t", "between"), [(True, T_30, 1.0), (False, T_4, 2.0)])
def test_the_narrowest_tolerance_is_where_unchanged_code_just_passes(
    settled: bool, t: float, between: float
) -> None:
    half = t * 0.01 * math.sqrt(1 / 5 + 1 / 3 + between)

    found = narrowest_tolerance(0.01, sessions=5, most=3, settled=settled)

    assert -2 * math.log(1 - found) == pytest.approx(half, rel=1e-4)


def test_a_spread_that_can_never_be_judged_is_refused_with_what_it_supports() -> None:
    with pytest.raises(RefreshRefusedError) as caught:
        check_noise(sessions(_spread(0.05)), Budget(steps=100, tolerance=0.05), None)

    text = str(caught.value)
    assert "too noisy: 5 sessions spread by 5 % (standard deviation)" in text
    assert "supports a tolerance of 8.2 % or more" in text


def test_the_same_spread_is_taken_with_a_tolerance_that_supports_it() -> None:
    note = check_noise(sessions(_spread(0.05)), Budget(steps=100, tolerance=0.2), None)

    assert note == ""


def test_a_spread_that_only_a_settled_baseline_holds_is_taken_and_said() -> None:
    noisy, budget = sessions(_spread(0.01)), Budget(steps=100, tolerance=0.03)

    assert "may often be INCONCLUSIVE" in check_noise(noisy, budget, None)
    assert "may often be INCONCLUSIVE" in check_noise(noisy, budget, baseline())
    settled = baseline(appended=sessions(_spread(0.01), job="later"))
    assert check_noise(noisy, budget, settled) == ""


def test_without_a_tolerance_no_spread_is_too_wide() -> None:
    budget = Budget(steps=100, tolerance=None, floor_tok_s=1.0)

    assert check_noise(sessions(_spread(0.5)), budget, None) == ""
