"""``Timeline`` → ``Program``: what each call cost itself, and what it only waited for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .replay_gaps import Coverage, Gaps, measure_gaps, reached_ns
from .replay_kernels import (
    LAUNCH_QUEUE,
    Kernels,
    device_program,
    launches_in_flight,
    window_kernels,
)
from .replay_lanes import LaneEvents, call_codes, is_queue_op, lane_events, python_share
from .replay_program import (
    CallKind,
    DeviceProgram,
    FloatArray,
    HostProgram,
    Labels,
    Program,
    QueueOps,
    Waits,
)
from .replay_waits import CallWaits, find_waits
from .timeline import ApiKind, CodeArray, IntArray, Timeline

_KINDS = {
    ApiKind.LAUNCH: CallKind.LAUNCH,
    ApiKind.GRAPH_LAUNCH: CallKind.LAUNCH,
    ApiKind.SET: CallKind.LAUNCH,
    ApiKind.COPY: CallKind.COPY,
    ApiKind.SYNC: CallKind.SYNC,
    ApiKind.ALLOC: CallKind.ALLOC,
    ApiKind.FREE: CallKind.ALLOC,
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A program, and the gaps of the trace that its events stand for (without the tails)."""

    program: Program
    events: LaneEvents
    gaps: Gaps


def decode(
    timeline: Timeline,
    labels: Labels | None = None,
    queues: QueueOps | None = None,
    main_thread: int | None = None,
) -> Decoded:
    """Read the program that a traced window tells of.

    ``main_thread`` indexes ``Timeline.threads``: the one whose marks count the steps; by default
    the one with the most calls. Raises ``ValueError`` for a window without any host event.
    """
    events = lane_events(timeline, queues)
    if not len(events.lane):
        raise ValueError("a replay needs host calls in the window; the trace holds none")
    gaps = measure_gaps(timeline, events, labels or Labels.none())
    kernels = window_kernels(timeline, events)
    kinds = _call_kinds(timeline, events, queues)
    waits = find_waits(timeline, events, kernels, queues, kinds)
    spent = (events.end_ns - np.maximum(events.start_ns, gaps.begin_ns)).astype(np.float64)
    call_ns = np.maximum(spent - waits.blocked_ns, 0.0)
    device, latency = device_program(kernels, events, timeline)
    limit = _unblock_launches(timeline, events, kernels, kinds, call_ns)
    host = HostProgram(
        kind=kinds,
        own_ns=gaps.own_ns,
        named_ns=gaps.named_ns,
        named=gaps.named,
        sleep_ns=gaps.sleep_ns,
        wait_ns=gaps.wait_ns,
        idle_first=gaps.idle_first,
        stall_ns=np.zeros(len(kinds)),
        call_ns=call_ns,
        blocked_ns=spent - call_ns,
        records=_records(timeline, events, gaps),
        python=python_share(events, timeline),
        waits=waits.code,
        target=waits.target,
        item=waits.item,
    )
    host = _take_out_stalls(timeline, events, host)
    main = _main_lane(events, main_thread)
    host, bounds, moved = _with_tails(timeline, events, host, main)
    launches = call_ns[kinds == CallKind.LAUNCH]
    labels = labels or Labels.none()
    program = Program(
        host=host,
        device=replace(device, call=moved[device.call], lag_ns=_copy_leads(device, waits, latency)),
        lane_bounds=bounds,
        lane_threads=events.threads,
        main=main,
        stream_device=kernels.stream_device,
        carried_ns=kernels.carried_ns,
        latency_ns=latency,
        launch_limit=limit,
        closing_streams=_closing_streams(events, kernels, waits, main, kinds),
        steps=timeline.window.steps,
        wall_ns=float(timeline.window.wall_ns),
        frames=labels.frames,
        frame_samples=labels.samples,
        queue_names=queues.names if queues else (),
        queue_capacity=queues.capacity if queues else (),
        launch_call_ns=float(np.median(launches)) if len(launches) else 0.0,
        python_lanes=sum(timeline.threads[one].python for one in events.threads),
    )
    return Decoded(program, events, gaps)


def _copy_leads(device: DeviceProgram, waits: CallWaits, latency_ns: FloatArray) -> FloatArray:
    """``lag_ns``, with the lead of each copy that its call waits for."""
    lag: FloatArray = device.lag_ns.copy()
    calls = np.flatnonzero(waits.code == Waits.COPY)
    copies = waits.target[calls]
    usual = np.maximum(latency_ns[device.stream[copies]], 0.0)
    lag[copies] = np.where(np.isnan(waits.lead_ns[calls]), usual, waits.lead_ns[calls])
    return lag


def _call_kinds(timeline: Timeline, events: LaneEvents, queues: QueueOps | None) -> CodeArray:
    codes = call_codes(events, timeline)
    kinds = np.full(len(codes), CallKind.OTHER, np.int8)
    for api, kind in _KINDS.items():
        kinds[codes == api] = kind
    if queues is not None:
        ops = is_queue_op(events, timeline)
        gets = queues.get[events.source[ops] - len(timeline.host_calls)]
        kinds[ops] = np.where(gets, CallKind.GET, CallKind.PUT)
    return kinds


def _unblock_launches(
    timeline: Timeline,
    events: LaneEvents,
    kernels: Kernels,
    kinds: CodeArray,
    call_ns: FloatArray,
) -> int:
    """Cut launches that stood before a full launch queue to the usual cost, in place; return the
    length of that queue, 0 if none was ever full."""
    start = (events.start_ns - timeline.window.start_ns).astype(np.float64)
    flying = launches_in_flight(kernels, start)
    limit = int(flying.max()) if len(flying) else 0
    if limit < LAUNCH_QUEUE:
        return 0
    full = np.zeros(len(kinds), np.bool_)
    full[kernels.event[flying >= 0.9 * limit]] = True
    free = (kinds == CallKind.LAUNCH) & ~full
    if not free.any():
        return limit
    usual = float(np.median(call_ns[free]))
    blocked = full & (call_ns > 2 * usual)
    call_ns[blocked] = usual
    return limit


def _records(timeline: Timeline, events: LaneEvents, gaps: Gaps) -> FloatArray:
    """Traced records an event stands for: its own, and the operators that began in its gap."""
    records = (~is_queue_op(events, timeline)).astype(np.float64)
    ops = timeline.ops
    if ops is None:
        return records
    starts = np.sort(ops.start_ns)
    # Operators of stand-in threads begin in the gaps of the lane they stand for; with one lane
    # there is nothing to tell apart, with several each lane takes those of its own threads.
    for lane, thread in enumerate(events.threads):
        mine = slice(*np.searchsorted(events.lane, (lane, lane + 1)))
        if len(events.threads) > 1:
            starts = np.sort(ops.start_ns[ops.thread == thread])
        inside = np.searchsorted(starts, events.end_ns[mine]) - np.searchsorted(
            starts, gaps.begin_ns[mine]
        )
        records[mine] += np.maximum(inside, 0)
    return records


def _take_out_stalls(timeline: Timeline, events: LaneEvents, host: HostProgram) -> HostProgram:
    """Move the profiler's own stalls out of the calls that they fell into."""
    stalls = timeline.stalls
    if not len(stalls):
        return host
    order = np.argsort(stalls.start_ns)
    start = stalls.start_ns[order]
    end = np.maximum.accumulate(start + stalls.dur_ns[order])
    start[1:] = np.maximum(start[1:], end[:-1])
    covered = Coverage(start, np.maximum(end, start))
    inside = covered(events.end_ns) - covered(events.start_ns)
    stall = np.minimum(inside, host.call_ns)
    return replace(host, call_ns=host.call_ns - stall, stall_ns=stall)


def _with_tails(
    timeline: Timeline, events: LaneEvents, host: HostProgram, main: int
) -> tuple[HostProgram, IntArray, IntArray]:
    """Append to the counting lane what it did after its last event (and nothing to others: whether
    they worked or waited then, nothing tells); also return lanes' bounds and where events went."""
    lanes = len(events.threads)
    ends = np.searchsorted(events.lane, np.arange(1, lanes + 1))
    reached = reached_ns(events)
    rest = np.maximum(timeline.window.end_ns - reached[ends - 1], 0).astype(np.float64)
    rest[np.arange(lanes) != main] = 0.0
    columns = {
        name: np.insert(getattr(host, name), ends, fill)
        for name, fill in (
            ("kind", CallKind.TAIL),
            ("own_ns", rest),
            ("named_ns", 0.0),
            ("named", -1),
            ("sleep_ns", 0.0),
            ("wait_ns", 0.0),
            ("idle_first", False),
            ("stall_ns", 0.0),
            ("call_ns", 0.0),
            ("blocked_ns", 0.0),
            ("records", 0.0),
            ("python", 1.0),
            ("waits", Waits.NOTHING),
            ("target", -1),
            ("item", -1),
        )
    }
    bounds = np.concatenate(([0], ends + np.arange(1, lanes + 1)))
    return HostProgram(**columns), bounds, np.arange(len(events.lane)) + events.lane


def _main_lane(events: LaneEvents, main_thread: int | None) -> int:
    if main_thread in events.threads:
        return events.threads.index(main_thread)
    return int(np.argmax(np.bincount(events.lane, minlength=len(events.threads))))


def _closing_streams(
    events: LaneEvents, kernels: Kernels, waits: CallWaits, main: int, kinds: CodeArray
) -> tuple[int, ...]:
    """Streams of the counting lane for which the last events of its window waited."""
    used = np.unique(kernels.stream[events.lane[kernels.event] == main])
    closing: set[int] = set()
    at = int(np.searchsorted(events.lane, main, side="right")) - 1
    while at >= 0 and events.lane[at] == main and kinds[at] == CallKind.SYNC:
        if waits.code[at] == Waits.STREAM:
            closing.add(int(waits.target[at]))
        elif waits.code[at] == Waits.DEVICE:
            of_device = kernels.stream_device[used] == waits.target[at]
            closing.update(int(one) for one in used[of_device])
        at -= 1
    return tuple(sorted(closing))
