"""The profiler's raw result → rows (``analysis/trace_rows.py``), without its slow Python parser.

The methods of an event differ between torch 2.6 and 2.14; what is not there is left unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from pytest_tokbudget.analysis.timeline import IntArray
from pytest_tokbudget.analysis.trace_rows import COLUMNS

_BYTES = re.compile(r'"bytes"\s*:\s*(\d+)')
_SIZED = ("Memcpy", "Memset")


def rows_of(events: Sequence[Any]) -> tuple[IntArray, tuple[str, ...]]:
    """Return rows, shape (n, 11), and the table of their names.

    Device rows that the profiler itself marks as annotations are left out. ``nbytes`` is −1 where
    the event does not tell.
    """
    count = len(events)
    rows = np.zeros((count, len(COLUMNS)), np.int64)
    ids: dict[str, int] = {}
    names = _column(events, "name")
    for name in names:
        if name not in ids:
            ids[name] = len(ids)
    rows[:, 1] = np.fromiter((ids[name] for name in names), np.int64, count)
    rows[:, 2] = -1
    rows[:, 3] = _on_device(events)
    for column, method in (
        (4, "device_index"),
        (5, "device_resource_id"),
        (6, "start_ns"),
        (7, "duration_ns"),
        (8, "correlation_id"),
        (9, "linked_correlation_id"),
        (10, "start_thread_id"),
    ):
        rows[:, column] = np.fromiter(_column(events, method), np.int64, count)
    sized = np.array([name.startswith(_SIZED) for name in ids], np.bool_)
    if count:
        for at in np.flatnonzero(sized[rows[:, 1]] & (rows[:, 3] == 1)).tolist():
            rows[at, 2] = _nbytes(events[at])
    return rows[~_annotations(events)], tuple(ids)


def _column(events: Sequence[Any], method: str) -> list[Any]:
    return list(map(methodcaller(method), events))


def _on_device(events: Sequence[Any]) -> IntArray:
    """1 for rows of any device, 0 for the host's (device type 0)."""
    types = _column(events, "device_type")
    return np.fromiter((int(one) != 0 for one in types), np.int64, len(events))


def _annotations(events: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    marked = np.zeros(len(events), np.bool_)
    if len(events) and hasattr(events[0], "is_user_annotation"):
        on_device = _on_device(events) == 1
        said = np.fromiter(_column(events, "is_user_annotation"), np.bool_, len(events))
        marked = on_device & said
    return marked


def _nbytes(event: Any) -> int:
    """Bytes of a copy or set from whatever this torch tells of it."""
    for tell in (_from_meta, _from_json):
        found = tell(event)
        if found is not None:
            return found
    return -1


def _from_meta(event: Any) -> int | None:
    meta = _ask(event, "extra_meta")
    value = meta.get("bytes") if isinstance(meta, dict) else None
    return int(value) if value is not None and str(value).isdigit() else None


def _from_json(event: Any) -> int | None:
    text = _ask(event, "metadata_json")
    match = _BYTES.search(text) if isinstance(text, str) else None
    return int(match[1]) if match else None


def _ask(event: Any, method: str) -> Any:
    """The event's answer; None where it has no such method, or cannot tell for this event."""
    ask: Callable[[], Any] | None = getattr(event, method, None)
    if ask is None:
        return None
    try:
        return ask()
    except RuntimeError:
        return None
