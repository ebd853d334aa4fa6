"""The device side of the gaps: launched already, and not yet running."""

from __future__ import annotations

import numpy as np

from .causes import Cause
from .gaps import DeviceView, Gaps
from .launches import Calibration, calls_of_syncs
from .segments import Segments, joined, of_one_cause
from .timeline import ApiKind, BoolArray, IntArray, SmallIntArray, SyncKind, Timeline

DEPENDENCY_TOLERANCE_NS = 50_000
"""Longest time from the end of the event waited for on another device to the waiter's start."""


def split_device_side(
    timeline: Timeline,
    views: dict[int, DeviceView],
    gaps: Gaps,
    chosen: IntArray,
    own: tuple[DeviceView, Calibration],
) -> Segments:
    """Partition ``[split, end)`` of the ``chosen`` gaps.

    First the wait for another device, if the stream was told to wait and an event of another device
    ended just before; last what a start ordinarily takes (spacing between queued kernels, latency
    after a launch); what lies between has no cause in the trace.
    """
    view, calibration = own
    chosen = chosen[gaps.end_ns[chosen] > gaps.split_ns[chosen]]
    begin, end = gaps.split_ns[chosen], gaps.end_ns[chosen]
    waited_until, partner = _waited_for(view, views, begin, end)
    told = _told_to_wait(timeline, view, gaps.call[chosen], gaps.event[chosen])
    waited_until = np.where(told & (partner >= 0), waited_until, begin)
    waits = waited_until > begin
    calls = timeline.host_calls
    launch_end = calls.start_ns[gaps.call[chosen]] + calls.dur_ns[gaps.call[chosen]]
    queued = (launch_end + calibration.latency_ns <= gaps.start_ns[chosen]) & ~waits
    left_of_latency = calibration.latency_ns - np.maximum(gaps.start_ns[chosen] - launch_end, 0)
    ordinary = np.where(
        queued,
        calibration.spacing_ns,
        np.where(
            waits,
            calibration.latency_ns,
            np.maximum(left_of_latency, calibration.spacing_ns),
        ),
    )
    starting = np.maximum(end - ordinary, waited_until)
    cause = np.where(queued, Cause.SPACING, Cause.LAUNCH_LATENCY).astype(np.int8)
    dependent = waits.nonzero()[0]
    return joined(
        [
            Segments(
                begin[dependent],
                waited_until[dependent],
                np.full(len(dependent), Cause.STREAM_DEPENDENCY, np.int8),
                partner[dependent],
                chosen[dependent],
            ),
            of_one_cause(waited_until, starting, int(Cause.DEVICE_OTHER), chosen),
            of_one_cause(starting, end, cause, chosen),
        ]
    )


def _waited_for(
    view: DeviceView, views: dict[int, DeviceView], begin: IntArray, end: IntArray
) -> tuple[IntArray, SmallIntArray]:
    """The last event of another device that ended in ``(begin, end]`` and shortly before ``end``:
    when it ended, and its device (−1: none)."""
    until = begin.copy()
    partner = np.full(len(begin), -1, np.int32)
    for device, other in views.items():
        if device == view.device or not len(other.index):
            continue
        ends = np.sort(other.end_ns)
        at = np.searchsorted(ends, end, side="right") - 1
        last = ends[np.maximum(at, 0)]
        later = (at >= 0) & (last > until) & (end - last <= DEPENDENCY_TOLERANCE_NS)
        until[later] = last[later]
        partner[later] = device
    return until, partner


def _told_to_wait(
    timeline: Timeline, view: DeviceView, call: IntArray, event: IntArray
) -> BoolArray:
    """Whether the stream of ``event`` was told to wait since its launch before ``call``.

    From the driver's wait records where the trace has any; else from the launching thread's own
    wait calls since its previous launch.
    """
    calls, syncs = timeline.host_calls, timeline.syncs
    issued = calls.start_ns[call]
    is_wait = syncs.kind == SyncKind.WAIT_EVENT
    if is_wait.any():
        wait_call = calls_of_syncs(timeline)
        usable = is_wait & (wait_call >= 0) & (syncs.device == view.device)
        lane_of_wait, wait_ns = syncs.stream[usable], calls.start_ns[wait_call[usable]]
        launched = np.flatnonzero(view.call >= 0)
        lane = timeline.device_events.stream[view.index[launched]]
        return _newer(
            (lane_of_wait, wait_ns),
            (lane, calls.start_ns[view.call[launched]]),
            (timeline.device_events.stream[event], issued),
        )
    wait_calls = np.flatnonzero(calls.kind == ApiKind.WAIT_EVENT)
    launches = np.flatnonzero(calls.kind <= ApiKind.SET)
    return _newer(
        (calls.thread[wait_calls].astype(np.int64), calls.start_ns[wait_calls]),
        (calls.thread[launches].astype(np.int64), calls.start_ns[launches]),
        (calls.thread[call].astype(np.int64), issued),
    )


def _newer(
    waits: tuple[IntArray, IntArray],
    launches: tuple[IntArray, IntArray],
    asked: tuple[IntArray, IntArray],
) -> BoolArray:
    """For each asked (lane, time): is the last wait there newer than the last launch there?"""
    newer = np.zeros(len(asked[0]), np.bool_)
    for lane in np.unique(waits[0]):
        mine = np.flatnonzero(asked[0] == lane)
        when = asked[1][mine]
        wait = _last_before(np.sort(waits[1][waits[0] == lane]), when)
        launch = _last_before(np.sort(launches[1][launches[0] == lane]), when)
        newer[mine] = wait > launch
    return newer


def _last_before(times: IntArray, when: IntArray) -> IntArray:
    """The last of ``times`` strictly before each ``when``; −1 where there is none."""
    if not len(times):
        return np.full(len(when), -1, np.int64)
    at = np.searchsorted(times, when, side="left") - 1
    return np.where(at >= 0, times[np.maximum(at, 0)], -1)
