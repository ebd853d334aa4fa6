"""Bars about a zero line, drawn by rich: one figure a row."""

from __future__ import annotations

from dataclasses import dataclass

from rich.bar import Bar

SMALLEST_SPAN = 1.0
"""Percent that the widest bars stand for at least: noise of 0.1 % shall look like what it is."""

_THINNEST = 0.15
"""Columns of a bar: a figure of zero is still there."""


@dataclass(frozen=True)
class Scale:
    """Bars of ``width`` columns from ``low`` to ``high``, which hold 0 between them."""

    low: float
    high: float
    width: int

    def bar(self, value: float, color: str = "default") -> Bar:
        """Return the bar from 0 to ``value``."""
        thin = _THINNEST * (self.high - self.low) / self.width
        begin, end = min(value, 0.0), max(value, 0.0)
        if end - begin < thin:
            end = begin + thin
        return Bar(
            self.high - self.low,
            begin - self.low,
            end - self.low,
            width=self.width,
            color=color,
        )


def scale_of(values: list[float], width: int) -> Scale:
    """Return the scale on which all of ``values`` fit."""
    low, high = min([0.0, *values]), max([0.0, *values])
    missing = max(0.0, SMALLEST_SPAN - (high - low)) / 2
    return Scale(low - missing, high + missing, width)
