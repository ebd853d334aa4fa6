"""Which host events waited, for what, and how long of their duration they did nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .event_names import copy_direction
from .replay_kernels import Kernels
from .replay_lanes import LaneEvents, call_codes, is_queue_op
from .replay_program import CallKind, FloatArray, QueueOps, Waits
from .timeline import ApiKind, CodeArray, DeviceKind, IntArray, SyncKind, Timeline

EVENT_SYNC_SLACK_NS = 20_000
"""A host that waited for an event returns within this after the kernel before the event ended."""


@dataclass(frozen=True, slots=True)
class CallWaits:
    """Per lane event: what it waits for (``Waits``), which one, and the part spent blocked.

    ``lead_ns`` is what a call that waits for its own copy does before the copy begins; NaN where
    the copy was queued behind other work, which hides it.
    """

    code: CodeArray
    target: IntArray
    item: IntArray
    blocked_ns: FloatArray
    lead_ns: FloatArray


def find_waits(
    timeline: Timeline,
    events: LaneEvents,
    kernels: Kernels,
    queues: QueueOps | None,
    kinds: CodeArray,
) -> CallWaits:
    """Find every event that can block, and how long it was blocked in the trace."""
    count = len(events.lane)
    waits = CallWaits(
        code=np.zeros(count, np.int8),
        target=np.full(count, -1, np.int64),
        item=np.full(count, -1, np.int64),
        blocked_ns=np.zeros(count),
        lead_ns=np.zeros(count),
    )
    _aim_syncs(timeline, events, kernels, waits)
    _block_on_devices(timeline, events, kernels, waits)
    _block_on_copies(timeline, events, kernels, kinds, waits)
    if queues is not None:
        _block_on_queues(timeline, events, queues, waits)
    return waits


def _aim_syncs(timeline: Timeline, events: LaneEvents, kernels: Kernels, waits: CallWaits) -> None:
    """Say of each synchronization, and of each ``cudaFree``, what it waits for."""
    api = call_codes(events, timeline)
    # Stream-ordered frees and unmaps of memory do not wait; the plain ones wait like a sync.
    plain_free = np.array([_frees_blocking(name) for name in timeline.names], np.bool_)
    ours = ~is_queue_op(events, timeline)
    name = np.zeros(len(api), np.int64)
    name[ours] = timeline.host_calls.name[events.source[ours]]
    frees = (api == ApiKind.FREE) & plain_free[name]
    latest = _latest_stream(events, kernels)
    for at in np.flatnonzero((api == ApiKind.SYNC) | frees):
        if latest[at] < 0:
            continue
        waits.code[at] = Waits.DEVICE
        waits.target[at] = kernels.stream_device[latest[at]]
    if len(timeline.syncs):
        _aim_by_records(timeline, events, kernels, waits, np.flatnonzero(api == ApiKind.SYNC))
    else:
        for at in np.flatnonzero(api == ApiKind.SYNC):
            if "Stream" in timeline.names[name[at]] and latest[at] >= 0:
                waits.code[at], waits.target[at] = Waits.STREAM, latest[at]


def _frees_blocking(name: str) -> bool:
    return name in ("cudaFree", "cuMemFree", "cuMemFree_v2", "cudaFreeHost", "cuMemFreeHost")


def _latest_stream(events: LaneEvents, kernels: Kernels) -> IntArray:
    """Per event: the dense stream its lane launched on last before it (−1: none so far)."""
    launched = np.full(len(events.lane), -1, np.int64)
    launched[kernels.event] = kernels.stream
    at = np.where(launched >= 0, np.arange(len(launched)), -1)
    last = np.maximum.accumulate(at)
    known = (last >= 0) & (events.lane[np.maximum(last, 0)] == events.lane)
    return np.where(known, launched[np.maximum(last, 0)], -1)


def _aim_by_records(
    timeline: Timeline, events: LaneEvents, kernels: Kernels, waits: CallWaits, calls: IntArray
) -> None:
    """Take targets from the driver's synchronization records, by correlation."""
    syncs = timeline.syncs
    by_correlation = {int(one): at for at, one in enumerate(syncs.correlation)}
    streams = {
        (int(device), int(stream)): dense
        for dense, (device, stream) in enumerate(zip(kernels.stream_device, kernels.stream_id))
    }
    ends = np.sort(kernels.end_ns)
    by_end = np.argsort(kernels.end_ns, kind="stable")
    for at in calls:
        record = by_correlation.get(int(timeline.host_calls.correlation[events.source[at]]))
        if record is None:
            continue
        device, kind = int(syncs.device[record]), syncs.kind[record]
        dense = streams.get((device, int(syncs.stream[record])))
        if kind == SyncKind.STREAM:
            # A stream on which nothing ever ran is waited for in no time.
            waits.code[at] = Waits.NOTHING if dense is None else Waits.STREAM
            waits.target[at] = -1 if dense is None else dense
        elif kind == SyncKind.EVENT:
            end = float(events.end_ns[at] - timeline.window.start_ns)
            last = int(np.searchsorted(ends, end, side="right")) - 1
            fresh = last >= 0 and end - ends[last] <= EVENT_SYNC_SLACK_NS
            waits.code[at] = Waits.KERNEL if fresh else Waits.NOTHING
            waits.target[at] = by_end[last] if fresh else -1
        elif device in kernels.stream_device:
            waits.code[at], waits.target[at] = Waits.DEVICE, device


def _block_on_devices(
    timeline: Timeline, events: LaneEvents, kernels: Kernels, waits: CallWaits
) -> None:
    """Blocked part of synchronizations: until all that was launched before had ended."""
    begin = timeline.window.start_ns
    start = (events.start_ns - begin).astype(np.float64)
    end = (events.end_ns - begin).astype(np.float64)
    for code, key in (
        (Waits.DEVICE, kernels.stream_device[kernels.stream]),
        (Waits.STREAM, kernels.stream),
    ):
        calls = np.flatnonzero(waits.code == code)
        for target in np.unique(waits.target[calls]):
            mine = calls[waits.target[calls] == target]
            release = _release(kernels, start, np.flatnonzero(key == target), start[mine])
            streams = kernels.stream_device == target
            carried = (
                kernels.carried_ns[streams]
                if code == Waits.DEVICE
                else kernels.carried_ns[target : target + 1]
            )
            release = np.maximum(release, carried.max(initial=0.0))
            waits.blocked_ns[mine] = np.maximum(np.minimum(release, end[mine]) - start[mine], 0)
    calls = np.flatnonzero(waits.code == Waits.KERNEL)
    release = kernels.end_ns[waits.target[calls]]
    waits.blocked_ns[calls] = np.maximum(np.minimum(release, end[calls]) - start[calls], 0)


def _release(
    kernels: Kernels, call_start: FloatArray, chosen: IntArray, moments: FloatArray
) -> FloatArray:
    """When all chosen kernels launched before each moment had ended (0: none were)."""
    launch = call_start[kernels.event[chosen]]
    order = np.argsort(launch, kind="stable")
    done = np.concatenate(([0.0], np.maximum.accumulate(kernels.end_ns[chosen][order])))
    result: FloatArray = done[np.searchsorted(launch[order], moments, side="left")]
    return result


def _block_on_copies(
    timeline: Timeline,
    events: LaneEvents,
    kernels: Kernels,
    kinds: CodeArray,
    waits: CallWaits,
) -> None:
    """Copies that hold the host until they are done: pageable device→host, and ``cudaMemcpy``."""
    begin = timeline.window.start_ns
    is_copy = kernels.kind == DeviceKind.COPY
    blocking = np.array([_blocks(one) for one in timeline.names], np.bool_)
    device_name = timeline.device_events.name[kernels.source]
    call = kernels.event
    call_name = timeline.host_calls.name[
        np.minimum(events.source[call], len(timeline.host_calls) - 1)
    ]
    held = is_copy & (kinds[call] == CallKind.COPY)
    held &= blocking[device_name] | blocking[call_name]
    held &= kernels.end_ns <= (events.end_ns[call] - begin) + EVENT_SYNC_SLACK_NS
    start = (events.start_ns - begin).astype(np.float64)
    spent = (events.end_ns - events.start_ns).astype(np.float64)
    for stream in np.unique(kernels.stream[held]):
        mine = np.flatnonzero(kernels.stream == stream)
        copies = mine[held[mine]]
        calls = call[copies]
        before = _release(kernels, start, mine, start[calls])
        blocked = kernels.end_ns[copies] - start[calls]
        lead = np.maximum(kernels.start_ns[copies] - start[calls], 0.0)
        waits.lead_ns[calls] = np.where(before > start[calls], np.nan, lead)
        waits.code[calls], waits.target[calls] = Waits.COPY, copies
        waits.blocked_ns[calls] = np.minimum(blocked, spent[calls])


def _blocks(name: str) -> bool:
    return copy_direction(name) == "DtoH pageable" or name == "cudaMemcpy"


def _block_on_queues(
    timeline: Timeline, events: LaneEvents, queues: QueueOps, waits: CallWaits
) -> None:
    """A get waits for its item's put; a put, in a full queue, for the get that made room."""
    ours = np.flatnonzero(is_queue_op(events, timeline))
    op = events.source[ours] - len(timeline.host_calls)
    waits.code[ours] = np.where(queues.get[op], Waits.GET, Waits.PUT)
    waits.target[ours], waits.item[ours] = queues.queue[op], queues.item[op]
    done = {
        (bool(get), int(queue), int(item)): int(end)
        for get, queue, item, end in zip(queues.get, queues.queue, queues.item, queues.end_ns)
    }
    for at, one in zip(ours, op):
        queue, item = int(queues.queue[one]), int(queues.item[one])
        getting = bool(queues.get[one])
        partner = item if getting else item - queues.capacity[queue]
        bounded = getting or queues.capacity[queue] > 0
        release = done.get((not getting, queue, partner)) if bounded else None
        if release is not None:
            stop = min(release, int(events.end_ns[at]))
            waits.blocked_ns[at] = max(stop - int(events.start_ns[at]), 0)
