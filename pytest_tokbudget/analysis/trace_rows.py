"""Raw profiler rows → ``Timeline``.

A row is what the profiler's raw result says of one event, as int64 columns (``COLUMNS``); names are
ids into a table. This is the form in which traces are recorded and passed on; nothing in it is
interpreted yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .event_names import STALL_NAME, api_kind, device_kind, is_annotation, is_api, sync_kind
from .timeline import (
    CpuOps,
    DeviceEvents,
    HostCalls,
    IntArray,
    SmallIntArray,
    Stalls,
    SyncRecords,
    ThreadInfo,
    Timeline,
    Window,
)

COLUMNS = (
    "group",
    "name",
    "nbytes",
    "on_device",
    "device",
    "resource",
    "start_ns",
    "dur_ns",
    "correlation",
    "linked_correlation",
    "start_thread",
)
"""Columns of a row. ``device`` of a host row is the pid (−1: the profiler's own); ``resource`` is
the stream, or the thread of a host row: its native id, or the low 32 bits of its pthread ident."""

_GROUP, _NAME, _NBYTES, _ON_DEVICE, _DEVICE, _RESOURCE, _START, _DUR, _CORRELATION = range(9)
_LOW32 = 0xFFFFFFFF
_PID_LIMIT = 1 << 22
_API, _OP, _STALL, _EVENT, _SYNC, _IGNORED = range(6)

Bits: TypeAlias = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class KnownThread:
    """A thread as the traced process knew it: ``ident`` is its pthread ident, 0 if unknown."""

    name: str
    ident: int
    native_id: int
    role: str | None = None
    python: bool = True


def timeline_from_rows(
    rows: IntArray,
    names: tuple[str, ...],
    threads: list[KnownThread],
    window: Window,
    devices: tuple[int, ...] | None = None,
) -> Timeline:
    """Sort rows, shape (n, 11), into the columns of a timeline.

    ``devices`` defaults to those on which anything ran. Threads that are in no table are added as
    non-Python threads (autograd's device threads are such).
    """
    category = _categories(rows, names)
    events = rows[category == _EVENT]
    host = rows[category == _API]
    ops = rows[category == _OP]
    stalls = rows[category == _STALL]
    table, thread_of = _resolve_threads(np.concatenate((host, ops))[:, _RESOURCE], threads)
    seen = tuple(int(one) for one in np.unique(events[:, _DEVICE]))
    return Timeline(
        window=window,
        devices=seen if devices is None else devices,
        device_events=_device_events(events, names),
        host_calls=HostCalls(
            thread=thread_of[: len(host)],
            start_ns=host[:, _START].copy(),
            dur_ns=host[:, _DUR].copy(),
            correlation=host[:, _CORRELATION].copy(),
            kind=_codes(names, host[:, _NAME], api_kind),
            name=host[:, _NAME].astype(np.int32),
        ),
        syncs=_sync_records(rows[category == _SYNC], names),
        stalls=Stalls(stalls[:, _START].copy(), stalls[:, _DUR].copy()),
        names=names,
        threads=table,
        ops=CpuOps(
            thread=thread_of[len(host) :],
            start_ns=ops[:, _START].copy(),
            dur_ns=ops[:, _DUR].copy(),
            name=ops[:, _NAME].astype(np.int32),
        )
        if len(ops)
        else None,
    )


def _categories(rows: IntArray, names: tuple[str, ...]) -> Bits:
    """Category of each row, decided once a name. Operator, API and device ids overlap, so nothing
    here is decided by an id."""
    on_device = rows[:, _ON_DEVICE] == 1
    host_category = np.array(
        [_STALL if n == STALL_NAME else _API if is_api(n) else _OP for n in names], np.int8
    )
    device_category = np.array(
        [
            _IGNORED if is_annotation(n) else _SYNC if sync_kind(n) is not None else _EVENT
            for n in names
        ],
        np.int8,
    )
    # A device row with the name of a host row repeats an annotation (Optimizer.step).
    host_names = np.unique(rows[~on_device, _NAME])
    device_category[host_names] = _IGNORED
    name = rows[:, _NAME]
    return np.where(on_device, device_category[name], host_category[name])


def _codes(names: tuple[str, ...], ids: IntArray, classify: Callable[[str], int | None]) -> Bits:
    """``classify`` applied once to each name in use, spread over ``ids``."""
    used = np.unique(ids)
    table = np.zeros(len(names), np.int8)
    for one in used:
        table[one] = classify(names[one]) or 0
    return table[ids]


def _device_events(rows: IntArray, names: tuple[str, ...]) -> DeviceEvents:
    return DeviceEvents(
        device=rows[:, _DEVICE].astype(np.int32),
        stream=rows[:, _RESOURCE].copy(),
        start_ns=rows[:, _START].copy(),
        dur_ns=rows[:, _DUR].copy(),
        correlation=rows[:, _CORRELATION].copy(),
        kind=_codes(names, rows[:, _NAME], device_kind),
        name=rows[:, _NAME].astype(np.int32),
        nbytes=rows[:, _NBYTES].copy(),
    )


def _sync_records(rows: IntArray, names: tuple[str, ...]) -> SyncRecords:
    return SyncRecords(
        device=rows[:, _DEVICE].astype(np.int32),
        stream=rows[:, _RESOURCE].copy(),
        start_ns=rows[:, _START].copy(),
        dur_ns=rows[:, _DUR].copy(),
        correlation=rows[:, _CORRELATION].copy(),
        kind=_codes(names, rows[:, _NAME], sync_kind),
    )


def _resolve_threads(
    resource: IntArray, known: list[KnownThread]
) -> tuple[tuple[ThreadInfo, ...], SmallIntArray]:
    """The table of threads (known ones first), and each row's index into it."""
    table = [ThreadInfo(one.native_id, one.name, one.role, one.python) for one in known]
    by_native = {one.native_id: index for index, one in enumerate(known) if one.native_id}
    by_ident = {one.ident & _LOW32: index for index, one in enumerate(known) if one.ident}
    values, inverse = np.unique(resource, return_inverse=True)
    index_of = np.empty(len(values), np.int32)
    for at, value in enumerate(int(one) for one in values):
        found = by_native.get(value, by_ident.get(value & _LOW32))
        if found is None:
            found = len(table)
            native_id = value if 0 < value < _PID_LIMIT else 0
            name = f"thread {native_id or hex(value & _LOW32)}"
            table.append(ThreadInfo(native_id, name, python=False))
        index_of[at] = found
    return tuple(table), index_of[inverse]
