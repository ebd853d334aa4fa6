"""The gaps of one device: when it ran nothing, which event ended each gap, and who launched it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .intervals import NO_CODE, Labelled, label_stretch
from .launches import Calibration, usable_events
from .timeline import ApiKind, BoolArray, IntArray, SmallIntArray, Timeline


@dataclass(frozen=True, slots=True)
class Gaps:
    """One entry a gap ``[start, end)``, in order of time, on the host's clock.

    ``event`` is the device event that ended the gap (−1: none in the trace), ``call`` its launch
    (−1: no record), ``thread`` the thread that made it; for a gap that nothing ended, the thread of
    the device's last launch. ``owner`` is the Python thread whose stacks explain ``thread``:
    itself, or for a thread that never runs Python the last Python thread that launched on the same
    stream (−1: none).
    ``split_ns`` is the end of the launch, clipped to the gap: host side before, device side after.
    """

    start_ns: IntArray
    end_ns: IntArray
    event: IntArray
    call: IntArray
    thread: SmallIntArray
    owner: SmallIntArray
    split_ns: IntArray
    inside_graph: BoolArray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class DeviceView:
    """The usable events of one device in order of start (then priority), skew corrected.

    ``index`` points into ``Timeline.device_events``; ``call`` is the launch of each.
    """

    device: int
    index: IntArray
    start_ns: IntArray
    end_ns: IntArray
    call: IntArray
    stretches: Labelled


def view_device(
    timeline: Timeline, launch: IntArray, device: int, calibration: Calibration
) -> DeviceView:
    """Collect one device's events and partition the window into busy by kind and idle."""
    events, window = timeline.device_events, timeline.window
    index = np.flatnonzero((events.device == device) & usable_events(timeline))
    index = index[np.lexsort((events.kind[index], events.start_ns[index]))]
    start = events.start_ns[index] + calibration.skew_ns
    end = start + events.dur_ns[index]
    stretches = label_stretch(start, end, events.kind[index], (window.start_ns, window.end_ns))
    return DeviceView(device, index, start, end, launch[index], stretches)


def find_gaps(timeline: Timeline, view: DeviceView) -> Gaps:
    """Return the idle stretches of ``view`` with what ended them."""
    calls, threads = timeline.host_calls, timeline.threads
    idle = view.stretches.code == NO_CODE
    start, end = view.stretches.start_ns[idle], view.stretches.end_ns[idle]
    at = np.searchsorted(view.start_ns, end, side="left")
    ended = at < len(view.index)
    at = np.minimum(at, max(len(view.index) - 1, 0))
    event = np.full(len(start), -1, np.int64)
    call = np.full(len(start), -1, np.int64)
    thread = np.full(len(start), -1, np.int32)
    owner = thread.copy()
    inside_graph = np.zeros(len(start), np.bool_)
    split = end.copy()
    if len(view.index):
        event[ended] = view.index[at[ended]]
        call[ended] = view.call[at[ended]]
        by_thread = np.where(ended, call, _last_call(view))
        known = by_thread >= 0
        thread[known] = calls.thread[by_thread[known]]
        python = np.array([one.python for one in threads] + [False], np.bool_)
        owner = np.where(python[thread], thread, -1).astype(np.int32)
        foreign = known & ended & ~python[thread]
        owner[foreign] = _owners(timeline, view, at[foreign], python)
        inside_graph = ended & _repeats_graph_launch(timeline, view)[at]
        launched = call >= 0
        launch_end = calls.start_ns[call[launched]] + calls.dur_ns[call[launched]]
        split[launched] = np.clip(launch_end, start[launched], end[launched])
    return Gaps(start, end, event, call, thread, owner, split, inside_graph)


def _last_call(view: DeviceView) -> int:
    """The launch of the device's last event that has one; −1 without any."""
    launched = view.call[view.call >= 0]
    return int(launched[-1]) if len(launched) else -1


def _repeats_graph_launch(timeline: Timeline, view: DeviceView) -> BoolArray:
    """Events of a graph launch other than the first of it on this device."""
    repeats = np.zeros(len(view.index), np.bool_)
    kind = timeline.host_calls.kind
    of_graph = np.flatnonzero(view.call >= 0)
    of_graph = of_graph[kind[view.call[of_graph]] == ApiKind.GRAPH_LAUNCH]
    repeats[of_graph] = True
    _, first = np.unique(view.call[of_graph], return_index=True)
    repeats[of_graph[first]] = False
    return repeats


def _owners(timeline: Timeline, view: DeviceView, at: IntArray, python: BoolArray) -> SmallIntArray:
    """For events launched by threads without Python: the Python thread that launched last, before
    them, on the same stream."""
    calls = timeline.host_calls
    owners = np.full(len(at), -1, np.int32)
    launched = np.flatnonzero(view.call >= 0)
    launched = launched[python[calls.thread[view.call[launched]]]]
    stream = timeline.device_events.stream[view.index]
    issued = calls.start_ns[view.call[at]]
    for one in np.unique(stream[at]):
        theirs = launched[stream[launched] == one]
        theirs = theirs[np.argsort(calls.start_ns[view.call[theirs]], kind="stable")]
        mine = np.flatnonzero(stream[at] == one)
        before = np.searchsorted(calls.start_ns[view.call[theirs]], issued[mine], side="right") - 1
        found = before >= 0
        owners[mine[found]] = calls.thread[view.call[theirs[before[found]]]]
    return owners
