"""Rates and shares as people write them: ``"14.5K tok/s"``, ``"3%"``."""

from __future__ import annotations

import math
import re
from numbers import Real

from ..errors import QuantityError

_SCALES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_NUMBER = r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)"
_RATE = re.compile(rf"\s*{_NUMBER}\s*([kKMG]?)\s*(?:tok(?:ens)?\s*/\s*s(?:ec)?)?\s*", re.ASCII)
_SHARE = re.compile(rf"\s*{_NUMBER}\s*(%?)\s*", re.ASCII)
_FIGURE = re.compile(rf"\s*{_NUMBER}\s*([A-Za-zµ%]*)\s*", re.ASCII)
_TIMES_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_FIGURE_SCALES: dict[str, dict[str, float]] = {
    "s": _TIMES_S,
    "ms": {name: 1e3 * seconds for name, seconds in _TIMES_S.items()} | {"ms": 1.0},
    "bytes": {
        name: base**power
        for letter, power in (("", 0), ("K", 1), ("M", 2), ("G", 3), ("T", 4))
        for name, base in ((f"{letter}B", 1000.0), (f"{letter}iB", 1024.0))
    },
}
_FIGURE_EXAMPLES = {
    "ms": '"40 ms" or a number of ms',
    "s": '"1.5 s" or a number of s',
    "%": '"10%"',
    "bytes": '"70 GiB" or a number of bytes',
    "": "a number",
}
_RATE_HELP = 'write tokens per second as a number or as "14.5K tok/s" (K, M or G)'
_SHARE_HELP = 'write a share as "3%" or 0.03, above 0 and below 100%'


def parse_rate(value: object) -> float:
    """Return ``value`` in tokens per second.

    ``value`` is a number, or text such as ``"14.5K tok/s"``, ``"12,345"``, ``"1.2M tok/s"``.
    Raises ``QuantityError`` for anything else, and for rates that are not finite and positive.
    """
    number = _plain_number(value)
    if number is None and isinstance(value, str) and (match := _RATE.fullmatch(value)):
        number = float(match[1].replace(",", "")) * _SCALES[match[2]]
    if number is None:
        raise QuantityError(f"{value!r} is no rate: {_RATE_HELP}")
    if not (math.isfinite(number) and number > 0):
        raise QuantityError(f"the rate {value!r} is not above 0 and finite: {_RATE_HELP}")
    return number


def parse_share(value: object) -> float:
    """Return ``value`` as a share between 0 and 1, both excluded.

    ``value`` is a number (0.03) or text (``"3%"``, ``"0.03"``). Raises ``QuantityError`` for
    anything else; a bare 3 is refused, since it could mean 3 % as well as 300 %.
    """
    number = _plain_number(value)
    if number is None and isinstance(value, str) and (match := _SHARE.fullmatch(value)):
        number = float(match[1].replace(",", "")) / (100.0 if match[2] else 1.0)
    if number is None:
        raise QuantityError(f"{value!r} is no share: {_SHARE_HELP}")
    if not 0 < number < 1:
        raise QuantityError(f"the share {value!r} is out of range: {_SHARE_HELP}")
    return number


def parse_figure(value: object, unit: str) -> float:
    """Return ``value`` in ``unit``: ``"ms"``, ``"s"``, ``"%"``, ``"bytes"``, ``""`` for a count.

    ``value`` is a number in that unit, or text: ``"40 ms"``, ``"1.5 s"``, ``"10%"``, ``"70 GiB"``.
    A bare number is refused for a percentage, since 0.1 could mean 10 % as well as 0.1 %; 0 is 0.
    Raises ``QuantityError`` for anything else, and for what is negative or not finite.
    """
    number = _plain_number(value)
    if number is not None and unit == "%" and number != 0:
        raise QuantityError(f"{value!r} is ambiguous as a percentage: {_figure_help(unit)}")
    if number is None and isinstance(value, str) and (match := _FIGURE.fullmatch(value)):
        scale = _FIGURE_SCALES.get(unit, {}).get(match[2], 1.0 if match[2] == unit else None)
        number = None if scale is None else float(match[1].replace(",", "")) * scale
    if number is None:
        raise QuantityError(f"{value!r} is no such figure: {_figure_help(unit)}")
    if not (math.isfinite(number) and number >= 0):
        raise QuantityError(f"{value!r} is not finite and at least 0: {_figure_help(unit)}")
    return number


def _figure_help(unit: str) -> str:
    return f"write {_FIGURE_EXAMPLES[unit]}"


def format_rate(tok_s: float) -> str:
    """Return ``tok_s`` for people, one decimal: ``"14.5K tok/s"``, ``"831.6 tok/s"``."""
    if 0 < tok_s < 1:
        return f"{tok_s:.2g} tok/s"
    for limit, scale, letter in ((1e3, 1.0, ""), (1e6, 1e3, "K"), (1e9, 1e6, "M")):
        # A value that rounds up to the limit belongs to the next letter: 1.0M, never 1000.0K.
        if round(abs(tok_s) / scale, 1) * scale < limit:
            return f"{tok_s / scale:.1f}{letter} tok/s"
    return f"{tok_s / 1e9:.1f}G tok/s"


def _plain_number(value: object) -> float | None:
    if type(value) is bool or not isinstance(value, Real):
        return None
    return float(value)
