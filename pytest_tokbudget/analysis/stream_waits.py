"""Streams that were told to wait for another stream, and what of that waiting a device shows.

A kernel is *held* when its stream was told to wait since the stream's launch before, and it began
late though launched and though its predecessor had ended, right after another stream's kernel had
ended. While it is held, the device is not idle: it runs what the stream waits for. That time counts
as exposed where nothing else ran; work of a third stream, or of the held one, hides the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .gaps import DeviceView, view_device
from .intervals import cut, label_stretch
from .launches import calibrate, calls_of_syncs, match_launches
from .timeline import ApiKind, BoolArray, IntArray, SyncKind, Timeline

LEAST_HELD_NS = 5_000
"""Kernels that began this soon after they could have were not held."""

RELEASE_NS = 10_000
"""A held kernel begins within this after the kernel that it waited for ended."""


@dataclass(frozen=True, slots=True)
class Holds:
    """Stretches ``[start, end)`` in which a kernel of stream ``held`` was held by stream ``by``."""

    start_ns: IntArray
    end_ns: IntArray
    held: IntArray
    by: IntArray


def exposed_wait_ns(timeline: Timeline, device: int) -> int | None:
    """Nanoseconds of the window in which ``device`` ran nothing but what a held stream waited for,
    of each two streams no more than they could have overlapped: the work of the lesser one.

    They are part of its busy time. Waiting for another device is none of it (the device is idle
    then). ``None`` where streams were told to wait and the trace does not say which ones.
    """
    if not (timeline.syncs.kind == SyncKind.WAIT_EVENT).any():
        return None if (timeline.host_calls.kind == ApiKind.WAIT_EVENT).any() else 0
    launch = match_launches(timeline)
    calibration = calibrate(timeline, launch, device)
    view = view_device(timeline, launch, device, calibration)
    holds = find_holds(timeline, view, calibration.latency_ns)
    whole = timeline.window.start_ns, timeline.window.end_ns
    stream = timeline.device_events.stream[view.index]
    work = np.minimum(view.end_ns, whole[1]) - np.maximum(view.start_ns, whole[0])
    total = 0
    pairs = np.stack((np.minimum(holds.held, holds.by), np.maximum(holds.held, holds.by)), axis=1)
    for pair in np.unique(pairs, axis=0):
        mine = (pairs == pair).all(axis=1)
        exposed = sum(
            _alone_ns(holds, mine & (holds.by == one), view, stream, whole) for one in pair
        )
        lesser = min(int(np.maximum(work[stream == one], 0).sum()) for one in pair)
        total += min(exposed, lesser)
    return total


def _alone_ns(
    holds: Holds, chosen: BoolArray, view: DeviceView, stream: IntArray, whole: tuple[int, int]
) -> int:
    """How long the device ran nothing but the stream that the chosen holds waited for."""
    if not chosen.any():
        return 0
    by = holds.by[chosen][0]
    none = np.zeros(int(chosen.sum()), np.int8)
    held = label_stretch(holds.start_ns[chosen], holds.end_ns[chosen], none, whole)
    inside = held.code == 0
    # Code 1 has the lower priority: it is left where only the stream waited for runs.
    alone = label_stretch(view.start_ns, view.end_ns, (stream == by).astype(np.int8), whole)
    pieces = cut(held.start_ns[inside], held.end_ns[inside], alone)
    return int((pieces.end_ns - pieces.start_ns)[alone.code[pieces.right] == 1].sum())


def find_holds(timeline: Timeline, view: DeviceView, latency_ns: int) -> Holds:
    """The kernels of one device that other streams of it held, in order of their start."""
    calls, stream = timeline.host_calls, timeline.device_events.stream[view.index]
    launched = view.call >= 0
    issued = np.where(launched, calls.start_ns[view.call], view.start_ns)
    ready = np.where(launched, issued + calls.dur_ns[view.call] + latency_ns, view.start_ns)
    told = np.zeros(len(stream), np.bool_)
    for one in np.unique(stream):
        mine = np.flatnonzero(stream == one)
        ready[mine[1:]] = np.maximum(ready[mine[1:]], view.end_ns[mine[:-1]])
        told[mine] = _told(issued[mine], _waits_issued(timeline, view.device, int(one)))
    late = np.flatnonzero(launched & told & (view.start_ns - ready > LEAST_HELD_NS))
    end, by = np.full(len(late), -1, np.int64), np.full(len(late), -1, np.int64)
    for one in np.unique(stream):
        ends = np.sort(view.end_ns[stream == one])
        at = np.searchsorted(ends, view.start_ns[late], side="right") - 1
        last = np.where(at >= 0, ends[np.maximum(at, 0)], -1)
        later = (last > end) & (last > ready[late]) & (stream[late] != one)
        later &= view.start_ns[late] - last <= RELEASE_NS
        end[later], by[later] = last[later], one
    held = by >= 0
    return Holds(ready[late][held], end[held], stream[late][held], by[held])


def _waits_issued(timeline: Timeline, device: int, stream: int) -> IntArray:
    """When the host told a stream to wait, ascending."""
    syncs, call = timeline.syncs, calls_of_syncs(timeline)
    mine = (syncs.kind == SyncKind.WAIT_EVENT) & (syncs.device == device) & (call >= 0)
    return np.sort(timeline.host_calls.start_ns[call[mine & (syncs.stream == stream)]])


def _told(issued: IntArray, waits: IntArray) -> BoolArray:
    """For each launch of a stream, in order: was it told to wait since the launch before?"""
    before = np.searchsorted(waits, issued)
    return np.diff(before, prepend=0) > 0
