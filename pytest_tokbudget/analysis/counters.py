"""What the program asked of its devices, counted a step: exact where the trace is complete."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .event_names import copy_direction
from .launches import match_launches
from .timeline import ApiKind, BoolArray, DeviceKind, IntArray, Timeline, Window

_SYNC_OF = (
    (re.compile(r"(Device|Ctx)Synchronize"), "syncs_device"),
    (re.compile(r"StreamSynchronize"), "syncs_stream"),
    (re.compile(r"EventSynchronize"), "syncs_event"),
)
_HOST_MEMORY = re.compile(r"Host")


def counters_by_step(timeline: Timeline) -> dict[str, IntArray]:
    """Return name → count in each step, shape (steps,); sizes are in bytes.

    Names: ``kernel_launches``, ``graph_launches``, ``syncs_device|stream|event|other|copy`` (a
    copy without ``Async`` waits too), ``copies_<direction>``, ``copy_bytes_<direction>``
    (``htod_pageable``, ``dtoh_pinned`` …; bytes only where the profiler gives them), ``memsets``,
    ``device_allocs``, ``device_frees``, ``host_allocs``, ``host_frees``. An action belongs to the
    step in which the host asked for it. Where the ends of the steps are not known, the only entry
    is the sum over the window, shape (1,).
    """
    calls, window = timeline.host_calls, timeline.window
    step = _step_of(calls.start_ns, window)
    counts: dict[str, IntArray] = {}
    for kind, name in (
        (ApiKind.LAUNCH, "kernel_launches"),
        (ApiKind.GRAPH_LAUNCH, "graph_launches"),
    ):
        counts[name] = _count(step, calls.kind == kind, window)
    counts["memsets"] = _count(step, calls.kind == ApiKind.SET, window)
    for name_of, kind in (
        (_sync_name, ApiKind.SYNC),
        (_sync_name, ApiKind.COPY),
        (_memory_name("allocs"), ApiKind.ALLOC),
        (_memory_name("frees"), ApiKind.FREE),
    ):
        for name_id in np.unique(calls.name[calls.kind == kind]):
            counter = name_of(timeline.names[name_id])
            if counter is not None:
                found = _count(step, (calls.kind == kind) & (calls.name == name_id), window)
                counts[counter] = counts[counter] + found if counter in counts else found
    counts |= _copies(timeline)
    return counts


def counters_per_step(timeline: Timeline) -> dict[str, float]:
    """Return name → mean a step, as ``counters_by_step`` names them."""
    steps = timeline.window.steps
    return {
        name: float(counts.sum()) / steps for name, counts in counters_by_step(timeline).items()
    }


def _step_of(asked_ns: IntArray, window: Window) -> IntArray:
    """The step in which each moment lies, −1 outside the window."""
    ends = np.array(window.step_ends_ns[:-1], np.int64)
    # After the last mark only our own synchronization is asked for.
    end_ns = window.step_ends_ns[-1] if window.step_ends_ns else window.end_ns
    inside = (asked_ns >= window.start_ns) & (asked_ns < end_ns)
    step: IntArray = np.where(inside, np.searchsorted(ends, asked_ns, side="right"), -1)
    return step


def _count(
    step: IntArray, chosen: BoolArray, window: Window, weights: IntArray | None = None
) -> IntArray:
    chosen = chosen & (step >= 0)
    bins = max(len(window.step_ends_ns), 1)
    sums = np.bincount(step[chosen], None if weights is None else weights[chosen], minlength=bins)
    return sums.astype(np.int64)


def _copies(timeline: Timeline) -> dict[str, IntArray]:
    """Copies and their bytes by direction, each in the step of its launch."""
    events, calls, window = timeline.device_events, timeline.host_calls, timeline.window
    launch = match_launches(timeline)
    asked = events.start_ns.copy()
    asked[launch >= 0] = calls.start_ns[launch[launch >= 0]]
    step = _step_of(asked, window)
    counts: dict[str, IntArray] = {}
    unsized = set()
    for name_id in np.unique(events.name[events.kind == DeviceKind.COPY]):
        direction = copy_direction(timeline.names[name_id]).lower().replace(" ", "_")
        chosen = (events.kind == DeviceKind.COPY) & (events.name == name_id)
        found = {
            f"copies_{direction}": _count(step, chosen, window),
            f"copy_bytes_{direction}": _count(step, chosen, window, events.nbytes),
        }
        if (events.nbytes[chosen] < 0).any():
            unsized.add(f"copy_bytes_{direction}")
        for name, one in found.items():
            counts[name] = counts[name] + one if name in counts else one
    return {name: one for name, one in counts.items() if name not in unsized}


def _sync_name(call: str) -> str | None:
    """The counter of a synchronizing call; ``None`` for a copy that does not wait."""
    if "Memcpy" in call:
        return None if call.endswith("Async") or "Async_" in call else "syncs_copy"
    return next((name for pattern, name in _SYNC_OF if pattern.search(call)), "syncs_other")


def _memory_name(what: str) -> Callable[[str], str | None]:
    def name(call: str) -> str | None:
        return f"{'host' if _HOST_MEMORY.search(call) else 'device'}_{what}"

    return name
