"""The device side of a program: streams, launch latency, spacing and waits between streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .replay_lanes import LaneEvents
from .replay_program import DeviceProgram, FloatArray
from .timeline import BoolArray, DeviceKind, IntArray, SmallIntArray, SyncKind, Timeline

QUEUED_GAP_NS = 5_000
"""A kernel that began later than this after the one before it had not been queued."""

STREAM_WAIT_NS = 10_000
"""A kernel held back by another stream begins within this after that stream's kernel ended."""

LEAST_QUEUED = 10
TYPICAL_SPACING_NS = 1_000.0
"""Gap between queued kernels (H200: 0.93 … 1.15 µs), for streams with fewer than ten of them in the
trace: a tracer can slow a host so much that nothing is ever queued."""

LAUNCH_QUEUE = 900
"""Drivers queue 1,024 launches a stream; fewer than this in flight never block a launch."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels launched in the window by launching event, then start; times relative to its start.

    ``stream`` is dense; ``carried_ns`` says, per stream, when the work from before the window was
    done (0 where there was none).
    """

    event: IntArray
    stream: SmallIntArray
    kind: SmallIntArray
    start_ns: FloatArray
    end_ns: FloatArray
    source: IntArray
    stream_device: IntArray
    stream_id: IntArray
    carried_ns: FloatArray

    def __len__(self) -> int:
        return len(self.event)


def window_kernels(timeline: Timeline, events: LaneEvents) -> Kernels:
    """Match kernels with the events that launched them.

    A kernel without a launch record belongs to the launch of the kernel before it on its stream.
    """
    device = timeline.device_events
    begin = timeline.window.start_ns
    stream, pairs = _dense_streams(device.device, device.stream)
    event, known, before = _launching_event(timeline, events)
    start = (device.start_ns - begin).astype(np.float64)
    end = start + device.dur_ns
    order = np.lexsort((device.start_ns, stream))
    orphan = ~known & (start >= 0) & (start < timeline.window.wall_ns)
    event[order] = _inherit(event[order], stream[order], orphan[order])
    carried = np.zeros(len(pairs))
    early = before & (end > 0)
    np.maximum.at(carried, stream[early], end[early])
    kept = np.flatnonzero(event >= 0)
    kept = kept[np.lexsort((device.start_ns[kept], event[kept]))]
    return Kernels(
        event=event[kept],
        stream=stream[kept],
        kind=device.kind[kept].astype(np.int32),
        start_ns=start[kept],
        end_ns=end[kept],
        source=kept,
        stream_device=pairs[:, 0],
        stream_id=pairs[:, 1],
        carried_ns=carried,
    )


def _dense_streams(device: SmallIntArray, stream: IntArray) -> tuple[SmallIntArray, IntArray]:
    if not len(device):
        return np.zeros(0, np.int32), np.zeros((0, 2), np.int64)
    pairs = np.stack((device.astype(np.int64), stream), axis=1)
    unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
    return inverse.reshape(-1).astype(np.int32), unique


def _launching_event(
    timeline: Timeline, events: LaneEvents
) -> tuple[IntArray, BoolArray, BoolArray]:
    """Each device event's launching lane event (−1: none in the window), whether it has a launch
    record at all, and whether that was before the window."""
    calls, device = timeline.host_calls, timeline.device_events
    if not len(calls):
        none = np.zeros(len(device), np.bool_)
        return np.full(len(device), -1, np.int64), none, none
    order = np.argsort(calls.correlation, kind="stable")
    at = np.searchsorted(calls.correlation[order], device.correlation)
    call = order[np.minimum(at, len(order) - 1)]
    known = calls.correlation[call] == device.correlation
    event = np.where(known, events.owner[call], -1)
    call_end = calls.start_ns[call] + calls.dur_ns[call]
    return event, known, known & (call_end <= timeline.window.start_ns)


def _inherit(event: IntArray, stream: SmallIntArray, orphan: BoolArray) -> IntArray:
    """Give kernels without a launch record the event of the kernel before on their stream."""
    at = np.where(event >= 0, np.arange(len(event)), -1)
    last = np.maximum.accumulate(at) if len(at) else at
    usable = orphan & (last >= 0)
    usable &= stream[np.maximum(last, 0)] == stream
    return np.where(usable, event[np.maximum(last, 0)], event)


def device_program(
    kernels: Kernels, events: LaneEvents, timeline: Timeline
) -> tuple[DeviceProgram, FloatArray]:
    """Spacing, waits between streams, and (second) the launch latency of each stream.

    Launch latency is the median, over kernels that found their stream idle, of the time from the
    end of the launch call to the start of the kernel.
    """
    count = len(kernels)
    launched = (events.end_ns - timeline.window.start_ns)[kernels.event].astype(np.float64)
    previous_end = _previous_on_stream(kernels)
    gap = kernels.start_ns - previous_end
    queued = (gap < QUEUED_GAP_NS) & (launched < kernels.start_ns)
    after, lag = _stream_waits(timeline, kernels, gap, launched)
    latency = np.full(len(kernels.stream_device), np.nan)
    spacing = np.zeros(count)
    # The call of a copy may last until the copy is done, which says nothing of latency.
    plain = kernels.kind != DeviceKind.COPY
    arrived = (gap >= QUEUED_GAP_NS) & (after < 0) & plain
    default = float(np.median((kernels.start_ns - launched)[arrived])) if arrived.any() else 0.0
    for stream in range(len(latency)):
        mine = kernels.stream == stream
        idle = mine & arrived
        wait = float(np.median((kernels.start_ns - launched)[idle])) if idle.any() else default
        latency[stream] = wait
        # Those that arrived while the stream was still busy show what the hardware needs between.
        close = mine & queued & (launched + wait <= previous_end)
        usual = TYPICAL_SPACING_NS
        if close.sum() >= LEAST_QUEUED:
            usual = float(np.median(gap[close]))
        spacing[mine] = usual
        spacing[close] = gap[close]
    program = DeviceProgram(
        call=kernels.event,
        stream=kernels.stream,
        kind=kernels.kind.astype(np.int8),
        dur_ns=kernels.end_ns - kernels.start_ns,
        spacing_ns=spacing,
        after=after,
        lag_ns=lag,
    )
    return program, latency


def _previous_on_stream(kernels: Kernels) -> FloatArray:
    """Each kernel's predecessor's end on its stream; of the first, what the window found there."""
    order = np.lexsort((kernels.start_ns, kernels.stream))
    ends = np.zeros(len(order))
    if len(order):
        same = kernels.stream[order][1:] == kernels.stream[order][:-1]
        ends[order[1:]] = np.where(same, kernels.end_ns[order][:-1], 0.0)
        first = order[np.concatenate(([True], ~same))]
        ends[first] = kernels.carried_ns[kernels.stream[first]]
    return ends


def _stream_waits(
    timeline: Timeline, kernels: Kernels, gap: FloatArray, launched: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The kernel of another stream that held each kernel back (−1: none), and the lag after it.

    The profiler does not say which event a stream waited for, so only binding waits are seen: a
    kernel that began late although launched, right after the end of another stream's kernel.
    """
    after, lag = np.full(len(kernels), -1, np.int64), np.zeros(len(kernels))
    waits = timeline.syncs.kind == SyncKind.WAIT_EVENT
    if len(kernels.stream_device) < 2 or not waits.any():
        return after, lag
    late = (gap > QUEUED_GAP_NS) & (kernels.start_ns - launched > STREAM_WAIT_NS)
    by_end = np.argsort(kernels.end_ns, kind="stable")
    ends = kernels.end_ns[by_end]
    held = np.flatnonzero(late)
    at = np.searchsorted(ends, kernels.start_ns[held], side="right")
    for back in range(1, len(kernels.stream_device) + 1):
        candidate = by_end[np.maximum(at - back, 0)]
        delay = kernels.start_ns[held] - kernels.end_ns[candidate]
        fits = (at >= back) & (delay <= STREAM_WAIT_NS) & (after[held] < 0)
        fits &= kernels.stream[candidate] != kernels.stream[held]
        after[held[fits]], lag[held[fits]] = candidate[fits], delay[fits]
    return after, lag


def launches_in_flight(kernels: Kernels, call_start: FloatArray) -> IntArray:
    """Per kernel: how many of its stream were launched and not yet started when it was launched."""
    result = np.zeros(len(kernels), np.int64)
    for stream in range(len(kernels.stream_device)):
        mine = np.flatnonzero(kernels.stream == stream)
        times = call_start[kernels.event[mine]]
        mine = mine[np.argsort(times, kind="stable")]
        started = np.searchsorted(np.sort(kernels.start_ns[mine]), np.sort(times), side="right")
        result[mine] = np.arange(len(mine)) - started
    return result
