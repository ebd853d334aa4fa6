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
