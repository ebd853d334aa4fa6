"""Records to bytes and back: one way to encode, one way to fail."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..errors import NewerSchemaError, StoreError, UnreadableError
from ..records.base import SCHEMA, Record
from ..records.baseline import Baseline
from .stored_figures import check_figures

R = TypeVar("R", bound=Record)

SIGNIFICANT_DIGITS = 7
"""Of a stored figure: 1e-7 is far below the smallest spread that judging assumes (0.25 %)."""

_MEASURED = ("anchor", "appended", "learned", "log")
_REFERENCE_DIGITS = 4
"""Of the evidence kept for comparison, which is no more exact and longer."""


_LEAF = re.compile(rb"\{\n(?:[^{}\[\]]|\[[^{}\[\]]*\])*\}")
_LONGEST_LINE = 300


class _Header(msgspec.Struct):
    schema: int


def encode_pretty(record: Record) -> bytes:
    """JSON for people and diffs: fields in their declared order, one a line, newline at the end."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def encode_compact(record: Record) -> bytes:
    """JSON on one line, for records that only programs read."""
    return msgspec.json.encode(record) + b"\n"


def encode_baseline(baseline: Baseline) -> bytes:
    """JSON that is stable across rewriting: keys sorted, measured figures rounded once.

    The workload's declaration is not rounded, for it is compared.
    """
    tree = msgspec.to_builtins(baseline)
    for name in _MEASURED:
        tree[name] = _rounded(tree[name], SIGNIFICANT_DIGITS)
    tree["reference"] = _without_nulls(_rounded(tree["reference"], _REFERENCE_DIGITS))
    text = msgspec.json.encode(tree, order="sorted")
    before, evidence, after = _split(msgspec.json.format(text, indent=2))
    return before + _LEAF.sub(_on_one_line, evidence) + after + b"\n"


def _split(text: bytes) -> tuple[bytes, bytes, bytes]:
    """Cut around the evidence; only the top level has this indentation."""
    start = text.index(b'\n  "reference": ')
    end = text.index(b'\n  "schema": ', start)
    return text[:start], text[start:end], text[end:]


def _on_one_line(leaf: re.Match[bytes]) -> bytes:
    """One cause, frame or thread a line: half the bytes, and a diff that can be read."""
    # Line breaks in strings are escaped, so that a real one is always between two tokens.
    line = re.sub(rb"\n *", b" ", leaf.group())
    return line if len(line) <= _LONGEST_LINE else leaf.group()


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: _rounded(one, digits) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one, digits) for one in value]
    return value


def _without_nulls(value: Any) -> Any:
    """Every field of evidence that may be null is so by default: leaving them out saves a fifth."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def load(path: Path, kind: type[R], *, what_next: str) -> R:
    """Read one stored record.

    ``what_next`` tells a person what to do when the file cannot be used. Raises FileNotFoundError
    for no such file, NewerSchemaError for one of a newer version of this package, UnreadableError
    for one that is truncated, not JSON, another kind of record, of a schema that never was, or a
    baseline whose figures no measurement gives.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}); {what_next}") from error
    return decode(data, kind, path=path, what_next=what_next)


def decode(data: bytes, kind: type[R], *, path: Path, what_next: str) -> R:
    """Decode ``data`` as read from ``path``; raises as :func:`load` does."""
    name = kind.__name__
    try:
        header = msgspec.json.decode(data, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        found = _diagnosis(data, str(error))
        raise UnreadableError(f"{path}: expected a {name}, found {found}; {what_next}") from error
    if header.schema < 1:
        known = "1, the only one" if SCHEMA == 1 else f"one of 1 to {SCHEMA}"
        raise UnreadableError(
            f"{path}: says schema {header.schema}, and there never was such a schema: "
            f"expected {known}; {what_next}"
        )
    if header.schema > SCHEMA:
        raise NewerSchemaError(
            f"{path}: written with schema {header.schema}, this pytest-tokbudget reads up to "
            f"{SCHEMA}; upgrade pytest-tokbudget (pip install -U pytest-tokbudget)"
        )
    try:
        record = msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"{path}: expected a {name}, found JSON that is none ({error}); {what_next}"
        ) from error
    if isinstance(record, Baseline):
        check_figures(record, path=path, what_next=what_next)
    return record


def _diagnosis(data: bytes, error: str) -> str:
    if not data.strip():
        return "an empty file"
    if b"<<<<<<< " in data:
        return "merge conflict markers"
    if data.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer instead of the file (git lfs pull)"
    # A number that is cut off is no valid one, at the very end.
    if "truncated" in error or f"(byte {len(data)})" in error:
        return f"a truncated file of {len(data)} bytes"
    return f"something else ({error})"
