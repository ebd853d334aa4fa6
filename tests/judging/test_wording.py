"""Numbers as a person reads them."""

from __future__ import annotations

from math import log

import pytest

from pytest_tokbudget.judging import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.4, "0.4 %"),
        (3.0, "3 %"),
        (12.34, "12 %"),
        (9.96, "10 %"),
        (0.04, "0.04 %"),
        (0.5, "0.5 %"),
    ],
)
def test_percent(value: float, text: str) -> None:
    assert wording.percent(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.03, "3 %"), (0.025, "2.5 %"), (2 * 0.1, "20 %")])
def test_share_is_exact(value: float, text: str) -> None:
    assert wording.share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (14500.4, "14,500 tok/s"),
        (999.99, "1,000 tok/s"),
        (102.44, "102.4 tok/s"),
        (0.5, "0.5 tok/s"),
    ],
)
def test_rate(value: float, text: str) -> None:
    assert wording.rate(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.95, "5 % slower than the baseline"),
        (1.042, "4.2 % faster than the baseline"),
        (1.0, "As fast as the baseline"),
    ],
)
def test_change_names_the_direction(ratio: float, text: str) -> None:
    assert wording.change(-log(ratio)) == text


def test_interval_is_of_the_rate_with_the_slower_end_first() -> None:
    assert wording.interval(-log(0.95), 0.0) == "−5.0 … −5.0 %"
    assert wording.interval(0.05, 0.02) == "−6.8 … −3.0 %"
    assert wording.interval(0.0, 0.5) == "−39 … +65 %"
    assert wording.interval(0.0, 1e-6) == "0.0 … 0.0 %"
    assert wording.interval(0.0, 60.0) == "without bound"


def test_count_has_a_plural() -> None:
    assert [wording.count(number, "session") for number in (0, 1, 2)] == [
        "0 sessions",
        "1 session",
        "2 sessions",
    ]
