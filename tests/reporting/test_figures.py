"""How figures are written."""

from __future__ import annotations

import pytest

from pytest_tokbudget.reporting import figures


@pytest.mark.parametrize(
    ("value", "text"),
    [(14480.4, "14,480"), (999.6, "1,000"), (831.62, "831.6"), (0.01234, "0.01234")],
)
def test_rates(value: float, text: str) -> None:
    assert figures.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-5.11, "−5.1 %"), (0.377, "+0.38 %"), (0.001, "0 %"), (-23.6, "−24 %"), (9.96, "+10 %")],
)
def test_changes(value: float, text: str) -> None:
    assert figures.signed(value) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((-6.4, -3.8), "−6.4 … −3.8 %"),
        ((-0.04, 0.31), "0.0 … +0.3 %"),
        ((-25.2, 4.0), "−25 … +4 %"),
        ((-100.0, float("inf")), "without bound"),
    ],
)
def test_intervals(ends: tuple[float, float], text: str) -> None:
    assert figures.interval(ends) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.04123, "0.0412 ms"), (15.8123, "15.8 ms"), (1203.7, "1,204 ms")]
)
def test_milliseconds(value: float, text: str) -> None:
    assert figures.milliseconds(value) == text


def test_text_keeps_its_length_in_a_narrow_character_set() -> None:
    text = "−5.1 … ×2 → “ü”"

    assert figures.fitting(text, "utf-8") == text
    assert figures.fitting(text, "ascii") == '-5.1 ~ x2 > "?"'
