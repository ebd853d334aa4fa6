"""Recorded evidence as one compressed file a workload and trace density.

``rows`` (``pytest_tokbudget/analysis/trace_rows.py``; the group is the fault's index) are stored by
column, those that count up as differences; ``meta`` is JSON: names, threads, windows, truth.
``queue:…`` and ``marks:…`` are what the recorder saw, ``spy`` is py-spy's chrometrace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_tokbudget.analysis.timeline import IntArray, Timeline, Window
from pytest_tokbudget.analysis.trace_rows import COLUMNS, KnownThread, timeline_from_rows

_COUNTING = ("start_ns", "correlation", "linked_correlation")
_WIDTHS = (np.int8, np.int16, np.int32, np.int64)
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Evidence:
    """One file. ``series``: ``queue:NAME:SIDE:WORKER`` → (4, n) of start, end, sequence and depth,
    ``marks:WORKER`` → (n,), in monotonic ns (each window gives the offset to Unix time)."""

    rows: IntArray
    meta: dict[str, Any]
    series: dict[str, IntArray]
    spy: list[dict[str, Any]] | None

    def timeline(self, fault: str) -> Timeline:
        """The event arrays of one fault's window."""
        which = self.meta["faults"].index(fault)
        window = self.meta["windows"][fault]
        return timeline_from_rows(
            self.rows[self.rows[:, 0] == which],
            tuple(self.meta["names"]),
            [KnownThread(*one) for one in self.meta["threads"]],
            Window(
                window["start_ns"], window["end_ns"], window["steps"], tuple(window["step_ends_ns"])
            ),
        )


def write(
    path: Path,
    rows: IntArray,
    meta: Mapping[str, Any],
    series: Mapping[str, IntArray],
    spy: bytes | None = None,
) -> None:
    """Write one file; ``spy`` is the text of a chrometrace."""
    order = np.lexsort((rows[:, 6], rows[:, 3], rows[:, 0]))
    arrays: Arrays = {}
    for at, name in enumerate(COLUMNS):
        column = rows[order, at]
        arrays[f"rows:{name}"] = _narrow(_differences(column) if name in _COUNTING else column)
    for name, one in series.items():
        arrays[name] = _narrow(_differences(one))
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    if spy is not None:
        arrays["spy"] = np.frombuffer(spy, np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(path)


def read(path: Path) -> Evidence:
    """Read one file."""
    with np.load(path) as file:
        columns = [
            _sums(file[f"rows:{name}"]) if name in _COUNTING else file[f"rows:{name}"]
            for name in COLUMNS
        ]
        series = {
            name: _sums(file[name]) for name in file.files if name.startswith(("queue:", "marks:"))
        }
        spy = json.loads(file["spy"].tobytes()) if "spy" in file.files else None
        meta = json.loads(file["meta"].tobytes())
    return Evidence(np.stack(columns, axis=1).astype(np.int64), meta, series, spy)


def compact(source: Path, target: Path, faults: tuple[str, ...], steps: int) -> None:
    """Write the first ``steps`` steps of ``faults`` alone, with the truth of all."""
    whole = read(source)
    parts = []
    windows = {}
    for at, fault in enumerate(faults):
        if fault not in whole.meta["windows"]:
            continue
        window = dict(whole.meta["windows"][fault])
        ends = window["step_ends_ns"]
        if len(ends) > steps:
            window |= {"end_ns": ends[steps - 1], "steps": steps, "step_ends_ns": ends[:steps]}
        rows = whole.rows[whole.rows[:, 0] == whole.meta["faults"].index(fault)].copy()
        rows[:, 0] = at
        length = (window["end_ns"] - window["start_ns"]) // steps
        begun = window["start_ns"] - 2 * length, window["end_ns"] + 2 * length
        parts.append(rows[(rows[:, 6] >= begun[0]) & (rows[:, 6] < begun[1])])
        windows[fault] = window
    rows = np.concatenate(parts)
    used = np.unique(rows[:, 1])
    rows[:, 1] = np.searchsorted(used, rows[:, 1])
    names = [whole.meta["names"][one] for one in used]
    meta = whole.meta | {"faults": list(faults), "windows": windows, "names": names}
    write(target, rows, meta, _within(whole.series, windows))


def _within(
    series: Mapping[str, IntArray], windows: Mapping[str, dict[str, Any]]
) -> dict[str, IntArray]:
    """The calls and marks of the kept windows, with a second before each."""
    spans = [
        (one["start_ns"] - one["unix_offset_ns"] - 10**9, one["end_ns"] - one["unix_offset_ns"])
        for one in windows.values()
    ]
    kept = {}
    for name, values in series.items():
        moments = values if values.ndim == 1 else values[1]
        inside = np.zeros(len(moments), np.bool_)
        for begin, end in spans:
            inside |= (moments >= begin) & (moments <= end)
        kept[name] = values[..., inside]
    return kept


def _differences(values: IntArray) -> IntArray:
    first = np.zeros((*values.shape[:-1], 1), np.int64)
    return np.diff(values, axis=-1, prepend=first)


def _sums(values: npt.NDArray[Any]) -> IntArray:
    return np.cumsum(values, axis=-1, dtype=np.int64)


def _narrow(values: IntArray) -> npt.NDArray[Any]:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for width in _WIDTHS:
        if np.iinfo(width).min <= low and high <= np.iinfo(width).max:
            return values.astype(width)
    return values
