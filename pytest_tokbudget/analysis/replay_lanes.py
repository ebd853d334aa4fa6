"""Which host events follow each other: threads → lanes.

Autograd's device threads launch the backward pass without a Python frame of their own, while the
thread that called backward makes no calls at all: the two are one chain, and the next event follows
the last one of either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .launches import match_launches
from .replay_program import FloatArray, QueueOps
from .timeline import BoolArray, CodeArray, IntArray, SmallIntArray, Timeline


@dataclass(frozen=True, slots=True)
class LaneEvents:
    """Host events by lane, then start; clipped to the window, nested calls left out.

    ``source`` indexes ``Timeline.host_calls``, or, from ``len(host_calls)`` on, the queue
    operations; ``owner[i]`` is the event that call ``i`` of ``host_calls`` belongs to (itself, or
    the call it is nested in; −1 outside the window).
    """

    lane: SmallIntArray
    start_ns: IntArray
    end_ns: IntArray
    source: IntArray
    owner: IntArray
    threads: tuple[int, ...]


def lane_events(timeline: Timeline, queues: QueueOps | None) -> LaneEvents:
    """Arrange the calls and queue operations of a window into lanes.

    A lane stands for each Python thread with any event in the window; where no Python thread has
    one, for each thread.
    """
    calls = timeline.host_calls
    window = timeline.window
    thread, start, end = calls.thread, calls.start_ns, calls.start_ns + calls.dur_ns
    if queues is not None:
        thread = np.concatenate((thread, queues.thread))
        start = np.concatenate((start, queues.start_ns))
        end = np.concatenate((end, queues.end_ns))
    inside = (start < window.end_ns) & (end > window.start_ns)
    source = np.flatnonzero(inside)
    caller = _stand_ins(timeline, thread[source], start[source])
    threads = tuple(int(one) for one in np.unique(caller))
    lane = np.searchsorted(np.array(threads, np.int64), caller).astype(np.int32)
    order = np.lexsort((-end[source], start[source], lane))
    source, lane = source[order], lane[order]
    start = np.maximum(start[source], window.start_ns)
    end = np.minimum(end[source], window.end_ns)
    outer, parent = _outermost(lane, start, end)
    owner = np.full(len(calls), -1, np.int64)
    of_calls = source < len(calls)
    owner[source[of_calls]] = parent[of_calls]
    return LaneEvents(lane[outer], start[outer], end[outer], source[outer], owner, threads)


def _stand_ins(timeline: Timeline, thread: SmallIntArray, start: IntArray) -> IntArray:
    """Replace each thread without Python frames by the Python thread it works for: one that
    launches on the same stream in the window (the backward pass runs on the streams of the forward
    pass), else on the same device, and made no call meanwhile; of several, the one whose silence
    is the longest."""
    python = np.array([one.python for one in timeline.threads], np.bool_)
    by_stream, launches = _launches_by_stream(timeline)
    callers = np.flatnonzero(python & launches.any(axis=1))
    result = thread.astype(np.int64)
    if not len(callers):
        return result
    for native in (int(one) for one in np.unique(thread) if not python[one]):
        same = [one for one in callers if (by_stream[one] & by_stream[native]).any()]
        same = same or [one for one in callers if (launches[one] & launches[native]).any()]
        mine = np.flatnonzero(thread == native)
        busy = {int(one): np.sort(start[thread == one]) for one in same or callers}
        result[mine] = _most_silent(start[mine], busy)
    return result


def _launches_by_stream(timeline: Timeline) -> tuple[BoolArray, BoolArray]:
    """Whether each thread (row) launched anything in the window on each stream, and on each device
    (column)."""
    calls, device, window = timeline.host_calls, timeline.device_events, timeline.window
    streams, of = np.unique(np.stack((device.device, device.stream)), axis=1, return_inverse=True)
    table = np.zeros((len(timeline.threads), streams.shape[1]), np.bool_)
    if len(calls) and len(device):
        call = match_launches(timeline)
        known = call >= 0
        end = calls.start_ns[call] + calls.dur_ns[call]
        known &= (calls.start_ns[call] < window.end_ns) & (end > window.start_ns)
        table[calls.thread[call[known]], of.reshape(-1)[known]] = True
    devices = np.unique(streams[0])
    by_device = [table[:, streams[0] == one].any(axis=1) for one in devices]
    return table, np.stack(by_device, axis=1) if by_device else table


def _most_silent(times: IntArray, busy: dict[int, IntArray]) -> IntArray:
    """For each moment, the thread without any event around it for the longest time."""
    callers = list(busy)
    silence = np.empty((len(callers), len(times)))
    for row, caller in enumerate(callers):
        edges = np.concatenate(([-(2**62)], busy[caller], [2**62])).astype(np.float64)
        at = np.searchsorted(busy[caller], times, side="right")
        silence[row] = edges[at + 1] - edges[at]
    result: IntArray = np.array(callers, np.int64)[np.argmax(silence, axis=0)]
    return result


def _outermost(lane: SmallIntArray, start: IntArray, end: IntArray) -> tuple[BoolArray, IntArray]:
    """Which events lie in no other one of their lane, and each event's outermost event."""
    # Lanes lie far apart on a common axis, so that one running maximum serves them all.
    shift = lane.astype(np.int64) * (int(end.max() - start.min()) + 1) if len(end) else lane
    reach = np.maximum.accumulate(end + shift) if len(end) else end
    outer = np.ones(len(end), np.bool_)
    outer[1:] = (end + shift)[1:] > reach[:-1]
    outer[1:] |= lane[1:] != lane[:-1]
    return outer, np.cumsum(outer) - 1


def is_queue_op(events: LaneEvents, timeline: Timeline) -> BoolArray:
    """Which events are queue operations."""
    return events.source >= len(timeline.host_calls)


def call_codes(events: LaneEvents, timeline: Timeline) -> CodeArray:
    """``ApiKind`` of each event, −1 for queue operations."""
    queue = is_queue_op(events, timeline)
    codes = np.full(len(events.source), -1, np.int8)
    codes[~queue] = timeline.host_calls.kind[events.source[~queue]]
    return codes


def python_share(events: LaneEvents, timeline: Timeline) -> FloatArray:
    """1 for events of Python threads, 0 for those of the threads that work in their stead."""
    python = np.array([one.python for one in timeline.threads], np.float64)
    result = np.ones(len(events.source))
    calls = ~is_queue_op(events, timeline)
    result[calls] = python[timeline.host_calls.thread[events.source[calls]]]
    return result
