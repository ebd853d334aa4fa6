"""What a profiler and a recorder would have seen of a simulated run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .replay_program import Frame, LabelKind, Labels, QueueOps
from .simulate import Simulator
from .simulate_program import Machine, Op, OpKind, Span, Trace
from .timeline import (
    ApiKind,
    DeviceEvents,
    DeviceKind,
    HostCalls,
    Stalls,
    SyncKind,
    SyncRecords,
    ThreadInfo,
    Timeline,
    Window,
)

BASE_NS = 1_000_000_000
_API = {
    OpKind.LAUNCH: ("cudaLaunchKernel", ApiKind.LAUNCH),
    OpKind.COPY_OUT: ("cudaMemcpyAsync", ApiKind.COPY),
    OpKind.SYNC_STREAM: ("cudaStreamSynchronize", ApiKind.SYNC),
    OpKind.SYNC_DEVICE: ("cudaDeviceSynchronize", ApiKind.SYNC),
    OpKind.MALLOC: ("cudaMalloc", ApiKind.ALLOC),
    OpKind.FREE: ("cudaFree", ApiKind.FREE),
    OpKind.STREAM_WAIT: ("cudaStreamWaitEvent", ApiKind.WAIT_EVENT),
}
_SYNCS = {
    OpKind.SYNC_STREAM: SyncKind.STREAM,
    OpKind.SYNC_DEVICE: SyncKind.CONTEXT,
    OpKind.STREAM_WAIT: SyncKind.WAIT_EVENT,
}
_COPY_NAME = "Memcpy DtoH (Device -> Pageable)"
_NAMES = (*(name for name, _ in _API.values()), "kernel", _COPY_NAME)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulated window: its events, its queue marks, and perfect labels of its threads."""

    timeline: Timeline
    queues: QueueOps
    labels: Labels

    @property
    def step_ns(self) -> float:
        """Length of a step, tracer included."""
        return self.timeline.window.wall_ns / self.timeline.window.steps


def simulate(machine: Machine, programs: list[list[Op]], steps: int, main: int = 0) -> Simulated:
    """Run programs of ``steps`` steps; the window is the life of thread ``main``."""
    trace = Simulator(machine, programs).run()
    threads = len(programs)
    timeline = Timeline(
        window=Window(BASE_NS, BASE_NS + trace.end_ns[main], steps),
        devices=tuple(sorted(set(machine.stream_device))),
        device_events=_device_events(trace, machine),
        host_calls=_host_calls(trace, threads),
        syncs=_sync_records(trace, machine),
        stalls=Stalls(np.zeros(0, np.int64), np.zeros(0, np.int64)),
        names=_NAMES,
        threads=(
            *(ThreadInfo(one + 1, f"python {one}") for one in range(threads)),
            *(ThreadInfo(0, f"native {one}", python=False) for one in range(threads)),
        ),
    )
    return Simulated(timeline, _queue_ops(trace, machine), _labels(trace))


def _column(spans: list[Span], start: bool) -> np.ndarray:
    values = [one.start_ns if start else one.end_ns - one.start_ns for one in spans]
    return np.array(values, np.int64) + (BASE_NS if start else 0)


def _host_calls(trace: Trace, threads: int) -> HostCalls:
    calls = trace.calls
    names = [_API[one.op.kind][0] for one in calls]
    owner = [one.owner + threads * one.op.native for one in calls]
    return HostCalls(
        thread=np.array(owner, np.int32),
        start_ns=_column(calls, True),
        dur_ns=_column(calls, False),
        correlation=np.arange(1, len(calls) + 1),
        kind=np.array([_API[one.op.kind][1] for one in calls], np.int8),
        name=np.array([_NAMES.index(one) for one in names], np.int32),
    )


def _device_events(trace: Trace, machine: Machine) -> DeviceEvents:
    kernels = trace.kernels
    copies = np.array([one.op.kind is OpKind.COPY_OUT for one in kernels], np.bool_)
    streams = np.array([one.owner for one in kernels], np.int64)
    return DeviceEvents(
        device=np.array(machine.stream_device, np.int32)[streams],
        stream=streams,
        start_ns=_column(kernels, True),
        dur_ns=_column(kernels, False),
        correlation=np.array([one.link + 1 for one in kernels], np.int64),
        kind=np.where(copies, DeviceKind.COPY, DeviceKind.COMPUTE).astype(np.int8),
        name=np.where(copies, _NAMES.index(_COPY_NAME), _NAMES.index("kernel")).astype(np.int32),
        nbytes=np.full(len(kernels), -1, np.int64),
    )


def _sync_records(trace: Trace, machine: Machine) -> SyncRecords:
    numbered = [(at + 1, one) for at, one in enumerate(trace.calls) if one.op.kind in _SYNCS]
    spans = [one for _, one in numbered]
    whole = [one.op.kind is OpKind.SYNC_DEVICE for one in spans]
    device = [
        one.op.stream if all_streams else machine.stream_device[one.op.stream]
        for one, all_streams in zip(spans, whole)
    ]
    stream = [-1 if all_streams else one.op.stream for one, all_streams in zip(spans, whole)]
    return SyncRecords(
        device=np.array(device, np.int32),
        stream=np.array(stream, np.int64),
        start_ns=_column(spans, True),
        dur_ns=_column(spans, False),
        correlation=np.array([number for number, _ in numbered], np.int64),
        kind=np.array([_SYNCS[one.op.kind] for one in spans], np.int8),
    )


def _queue_ops(trace: Trace, machine: Machine) -> QueueOps:
    ops = trace.queue_ops
    return QueueOps(
        thread=np.array([one.owner for one in ops], np.int32),
        queue=np.array([one.op.other for one in ops], np.int32),
        get=np.array([one.op.kind is OpKind.GET for one in ops], np.bool_),
        item=np.array([one.link for one in ops], np.int64),
        start_ns=_column(ops, True),
        end_ns=_column(ops, True) + _column(ops, False),
        names=tuple(f"queue {one}" for one in range(len(machine.capacity))),
        capacity=machine.capacity,
    )


def _labels(trace: Trace) -> Labels:
    """What perfect stack samples would say: sleeps, and named Python."""
    spans = trace.stretches
    names = sorted({one.op.name or "sleep" for one in spans})
    frame = np.array([names.index(one.op.name or "sleep") for one in spans], np.int32)
    sleeps = np.array([one.op.kind is OpKind.SLEEP for one in spans], np.bool_)
    return Labels(
        thread=np.array([one.owner for one in spans], np.int32),
        start_ns=_column(spans, True),
        end_ns=_column(spans, True) + _column(spans, False),
        kind=np.where(sleeps, LabelKind.SLEEP, LabelKind.PYTHON).astype(np.int8),
        frame=frame,
        frames=tuple(Frame(one) for one in names),
        samples=tuple(int(one) for one in np.bincount(frame, minlength=len(names))),
    )
