"""Gathers what the trace, the replay and the timing pass say of each cause into one table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pytest_tokbudget.records.causes import CauseMs, CauseTable, DeviceMs

from .host_factor import HostFit
from .intervals import label_stretch
from .replay_cause import ReplayCause
from .replay_program import CallKind, FloatArray, Program
from .stream_waits import exposed_wait_ns
from .timeline import BoolArray, DeviceKind, Timeline, device_label
from .whatif import WhatIf

_CALLS = {
    ReplayCause.COPY: (CallKind.COPY,),
    ReplayCause.ALLOCATOR: (CallKind.ALLOC,),
    ReplayCause.SYNC: (CallKind.SYNC,),
    ReplayCause.LAUNCH: (CallKind.LAUNCH, CallKind.OTHER),
}


def cause_table(
    timeline: Timeline,
    program: Program,
    timing_step_ms: float,
    fit: HostFit | None = None,
    what: WhatIf | None = None,
    queue_waits_ms: Mapping[int, float] | None = None,
) -> CauseTable:
    """Build the table of one session's evidence; without a replay, of what the trace shows.

    ``queue_waits_ms`` is the time in queue calls in the timing pass, ms a step, by thread.
    """
    replayed = None if what is None else what.replayed_ns / what.steps / 1e6
    solved = fit is not None and fit.solved
    return CauseTable(
        step_ms=timing_step_ms,
        traced_step_ms=program.wall_ns / program.steps / 1e6,
        devices=device_times(timeline, program),
        causes=_causes(timeline, program, what, queue_waits_ms or {}),
        counting_thread=timeline.threads[program.lane_threads[program.main]].name,
        launch_call_us=program.launch_call_ns / 1e3 or None,
        replayed_step_ms=replayed,
        unexplained_ms=None if replayed is None or solved else timing_step_ms - replayed,
        approximate="" if what is None else _approximate(what, timing_step_ms),
    )


def _approximate(what: WhatIf, timing_step_ms: float) -> str:
    if not what.approximate:
        return ""
    replayed = what.replayed_ns / what.steps / 1e6
    missed = replayed / timing_step_ms - 1
    return (
        f"the replayed step is {missed:+.1%} off the timing pass ({replayed:.2f} ms for "
        f"{timing_step_ms:.2f} ms) and, with nothing corrected, {what.identity:+.1%} off its trace"
    )


def device_times(timeline: Timeline, program: Program) -> list[DeviceMs]:
    """Kernel time of each device in the trace's window: trustworthy even where its gaps are not."""
    window, events = timeline.window, timeline.device_events
    result = []
    for device in timeline.devices:
        mine = events.device == device
        start = events.start_ns[mine]
        labelled = label_stretch(
            start,
            start + events.dur_ns[mine],
            events.kind[mine],
            (window.start_ns, window.end_ns),
        )
        length = (labelled.end_ns - labelled.start_ns) / window.steps / 1e6
        ms = {kind: float(length[labelled.code == kind].sum()) for kind in DeviceKind}
        of_device = program.stream_device[program.device.stream] == device
        spacing = float(np.maximum(program.device.spacing_ns[of_device], 0).sum())
        waited_ns = exposed_wait_ns(timeline, device)
        result.append(
            DeviceMs(
                device=device_label(device),
                busy_ms=ms[DeviceKind.COMPUTE] + ms[DeviceKind.SET],
                exposed_communication_ms=ms[DeviceKind.COMMUNICATION],
                exposed_copy_ms=ms[DeviceKind.COPY],
                spacing_ms=spacing / window.steps / 1e6,
                stream_wait_ms=None if waited_ns is None else waited_ns / window.steps / 1e6,
            )
        )
    return result


def _causes(
    timeline: Timeline, program: Program, what: WhatIf | None, queue_waits_ms: Mapping[int, float]
) -> list[CauseMs]:
    """Causes of the host, thread by thread; the replay's rows stand with the counting thread."""
    rows = []
    for lane, thread in enumerate(program.lane_threads):
        mine = slice(program.lane_bounds[lane], program.lane_bounds[lane + 1])
        of_lane = np.zeros(len(program.host), np.bool_)
        of_lane[mine] = True
        name, devices = timeline.threads[thread].name, _devices_of(program, of_lane)
        direct = _direct(program, of_lane)
        measured = queue_waits_ms.get(thread) if lane == program.main else None
        if measured is not None:
            # The slower host of a trace waits less for the same producer.
            direct[ReplayCause.WAIT] += 1e6 * program.steps * measured - _in_queues(
                program, of_lane
            )
        for cause, ns in direct.items():
            shown = None if lane != program.main else what
            rows.append(
                CauseMs(
                    cause=cause.value,
                    thread=name,
                    devices=devices,
                    direct_ms=ns / program.steps / 1e6,
                    from_timing=cause is ReplayCause.WAIT and measured is not None,
                    what_if_ms=None if shown is None else shown.ms_per_step(cause),
                    alone_ms=None if shown is None else shown.ms_per_step(cause, alone=True),
                )
            )
        rows += _named(program, of_lane, name, devices, what)
    if what is not None:
        rows += [_device_cause(cause, what) for cause in (ReplayCause.SPACING, ReplayCause.BUSY)]
    return rows


def _device_cause(cause: ReplayCause, what: WhatIf) -> CauseMs:
    return CauseMs(
        cause=cause.value,
        direct_ms=0.0,
        what_if_ms=what.ms_per_step(cause),
        alone_ms=what.ms_per_step(cause, alone=True),
    )


def _devices_of(program: Program, of_lane: BoolArray) -> list[str]:
    mine = of_lane[program.device.call]
    used = np.unique(program.stream_device[program.device.stream[mine]])
    return [device_label(int(one)) for one in used]


def _direct(program: Program, of_lane: BoolArray) -> dict[ReplayCause, float]:
    """Traced host time of each cause that is not named, waiting included, in ns of the window."""
    host = program.host
    spent = host.call_ns + host.blocked_ns

    def total(column: FloatArray, which: BoolArray) -> float:
        return float(column[of_lane & which].sum())

    everything = np.ones(len(host), np.bool_)
    result = {cause: total(spent, np.isin(host.kind, kinds)) for cause, kinds in _CALLS.items()}
    result[ReplayCause.WAIT] = _in_queues(program, of_lane) + total(host.wait_ns, everything)
    result[ReplayCause.SLEEP] = total(host.sleep_ns, everything)
    result[ReplayCause.DISPATCH] = total(host.own_ns - host.named_ns, everything)
    return result


def _in_queues(program: Program, of_lane: BoolArray) -> float:
    """Traced time in queue calls, in ns of the window."""
    host = program.host
    queue = of_lane & np.isin(host.kind, (CallKind.PUT, CallKind.GET))
    return float((host.call_ns + host.blocked_ns)[queue].sum())


def _named(
    program: Program, of_lane: BoolArray, thread: str, devices: list[str], what: WhatIf | None
) -> list[CauseMs]:
    """One row a frame that names Python time of this lane."""
    host = program.host
    rows = []
    for at in np.unique(host.named[of_lane & (host.named >= 0)]):
        frame = program.frames[at]
        found = [] if what is None else [one for one in what.rows if one.frame == frame]
        rows.append(
            CauseMs(
                cause=ReplayCause.PYTHON.value,
                thread=thread,
                function=frame.function,
                file=frame.file,
                line=frame.line,
                samples=program.frame_samples[at],
                devices=devices,
                direct_ms=float(host.named_ns[of_lane & (host.named == at)].sum())
                / program.steps
                / 1e6,
                what_if_ms=sum(one.ns for one in found) / program.steps / 1e6 if what else None,
                alone_ms=sum(one.alone_ns for one in found) / program.steps / 1e6 if what else None,
            )
        )
    return rows
