"""How numbers are written in sentences."""

from __future__ import annotations

from math import expm1


def percent(value: float) -> str:
    """Write a positive percentage: ``"0.4 %"``, ``"3 %"``, ``"12 %"``."""
    digits = 0 if value >= 9.95 else 1 if value >= 0.095 else 2
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def share(value: float) -> str:
    """Write a share the author gave, exactly: 0.025 is ``"2.5 %"``."""
    return f"{100 * value:.6g} %"


def rate(tok_s: float) -> str:
    """Write a rate: ``"14,500 tok/s"``, ``"102.4 tok/s"``."""
    return f"{tok_s:,.0f} tok/s" if tok_s >= 999.5 else f"{tok_s:.4g} tok/s"


def change(d: float, than: str = "the baseline") -> str:
    """Write a difference of x = −log tok/s: ``"0.4 % slower than the baseline"``."""
    value = 100 * expm1(-d)
    if abs(value) < 0.005:
        return f"As fast as {than}"
    return f"{percent(abs(value))} {'slower' if d > 0 else 'faster'} than {than}"


def interval(d: float, half: float) -> str:
    """Write the 99 % interval of the change: ``"−6.4 … −3.8 %"``."""
    low, high = 100 * expm1(-(d + half)), 100 * expm1(-(d - half))
    if high > 1000:
        return "without bound"
    digits = 1 if max(abs(low), abs(high)) < 9.95 else 0
    return f"{_signed(low, digits)} … {_signed(high, digits)} %"


def _signed(value: float, digits: int) -> str:
    text = f"{abs(value):.{digits}f}"
    sign = "" if float(text) == 0 else "−" if value < 0 else "+"
    return sign + text


def count(number: int, noun: str) -> str:
    """Write ``"1 session"``, ``"3 sessions"``."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def must_show(tolerance: float) -> float:
    """The slow-down that must never pass, as a share: the tolerance twice over.

    Twice in log rate: 60 % and then 60 % of what is left are 84 %, not 120 %. Up to 5 % that is
    the double, but for a quarter of a per cent.
    """
    return 2 * tolerance if tolerance <= 0.05 else round(1 - (1 - tolerance) ** 2, 2)
