"""Rates and shares as people write them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.analysis.quantities import format_rate, parse_rate, parse_share
from pytest_tokbudget.errors import QuantityError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14.5K tok/s", 14_500.0),
        ("14.5k", 14_500.0),
        (" 12,345 tok/s ", 12_345.0),
        ("1.2M tokens/sec", 1.2e6),
        ("2G tok/s", 2e9),
        ("1e3", 1000.0),
        (832, 832.0),
        (14.5, 14.5),
        (np.float32(2.0), 2.0),
    ],
)
def test_rates_that_people_write(text: object, expected: float) -> None:
    assert parse_rate(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "bad",
    [
        *("", "fast", "14.5 KB/s", "-3K", "14,5K", "14.5m tok/s", "1 2", "nan", "inf", "0 tok/s"),
        *(0, -1, math.nan, math.inf, True, None, [1], "1e999"),
    ],
)
def test_what_is_no_rate_is_refused_with_its_value(bad: object) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_rate(bad)
    assert repr(bad) in str(caught.value)
    assert "14.5K tok/s" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"), [("3%", 0.03), (" 2.5 % ", 0.025), ("0.03", 0.03), (0.1, 0.1)]
)
def test_shares_that_people_write(text: object, expected: float) -> None:
    assert parse_share(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "bad", ["", "3", 3, 1, 1.0, "100%", "0%", 0, -0.1, "-3%", math.nan, math.inf, True, None, "x%"]
)
def test_what_is_no_share_is_refused_with_its_value(bad: object) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_share(bad)
    assert repr(bad) in str(caught.value)
    assert "3%" in str(caught.value)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (14_500, "14.5K tok/s"),
        (831.6, "831.6 tok/s"),
        (999.96, "1.0K tok/s"),
        (999_960, "1.0M tok/s"),
        (2.5e9, "2.5G tok/s"),
        (0.025, "0.025 tok/s"),
    ],
)
def test_rates_are_shown_with_one_decimal(rate: float, text: str) -> None:
    assert format_rate(rate) == text


@given(st.floats(min_value=1.0, max_value=1e12))
def test_what_is_shown_can_be_read_again(rate: float) -> None:
    assert parse_rate(format_rate(rate)) == pytest.approx(rate, rel=0.051)
