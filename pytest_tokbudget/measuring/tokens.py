"""What counts as a token count: host integers, alone or by kind."""

from __future__ import annotations

import operator
from numbers import Integral
from typing import TypeAlias

from ..errors import StepError

Tokens: TypeAlias = "int | dict[str, int]"

KINDS = ("slots", "real", "loss", "draft")
"""Padding included; without padding; labels not ignored; drafted."""

_RIGHT = (
    "what is right: the tokens of the step as a positive host integer, or as a dict such as "
    '{"real": 900, "slots": 1024}'
)


def checked(value: object, where: str, kind: str | None = None) -> Tokens:
    """Return ``value`` as a token count: a positive ``int``, or a dict of such by kind.

    In a dict, counts may be 0 as long as one is positive; ``kind``, when given, must be among them
    and positive. Numpy integers are taken, tensors refused by their type, for reading one would
    wait for the device. Raises ``StepError``, whose text begins with ``where``.
    """
    if isinstance(value, dict):
        return _checked_kinds(value, where, kind)
    count = _integer(value)
    if count is None or count <= 0:
        raise StepError(f"{where} {_describe(value)}; {_RIGHT}")
    return count


def quickly_checked(value: object) -> dict[str, int] | None:
    """Return a copy of ``value`` if it is a plain dict of right counts, else ``None``: ask
    ``checked``, which is slower and says what is wrong."""
    if type(value) is not dict:
        return None
    total = 0
    for kind, count in value.items():
        if type(count) is not int or count < 0 or kind not in KINDS:
            return None
        total += count
    if "slots" in value and value["slots"] < value.get("real", 0):
        return None
    return value.copy() if total else None


def by_kind(tokens: object, kind: str, constant: int | None = None) -> dict[str, int]:
    """Return a recorded count by kind: a bare count is of the gate's ``kind``, none is ``constant``
    tokens where the author declared that, else nothing."""
    if isinstance(tokens, dict):
        return tokens
    if isinstance(tokens, int):
        return {kind: tokens}
    return {} if constant is None else {kind: constant}


def _checked_kinds(value: dict[object, object], where: str, kind: str | None) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, each in value.items():
        if not isinstance(name, str) or name not in KINDS:
            raise StepError(f"{where} a token kind {name!r}; kinds are {', '.join(KINDS)}")
        count = _integer(each)
        if count is None or count < 0:
            raise StepError(f"{where} {_describe(each)} as {name!r} tokens; {_RIGHT}")
        counts[name] = count
    if not any(counts.values()):
        raise StepError(f"{where} no tokens at all ({counts}); {_RIGHT}")
    if counts.get("slots", total_real := counts.get("real", 0)) < total_real:
        raise StepError(
            f"{where} {counts['slots']} 'slots' for {counts['real']} 'real' tokens; slots are the "
            "real ones and the padding"
        )
    if kind is not None and not counts.get(kind):
        raise StepError(
            f"{where} no {kind!r} tokens ({counts}), which is the kind this test is judged by; "
            "return them too, or name another token_kind"
        )
    return counts


def _integer(value: object) -> int | None:
    if type(value) is bool or not isinstance(value, Integral):
        return None
    return operator.index(value)


def _describe(value: object) -> str:
    """Name ``value`` without ever asking a tensor for its text, which would wait for the device."""
    if value is None or isinstance(value, (bool, int, float)):
        return f"{value!r}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    advice = " (a tensor? use a count known on the host)" if hasattr(value, "dtype") else ""
    return f"a {name.removeprefix('builtins.')}{advice}"
