"""What the simulator runs and records: instructions, machines, traces."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class OpKind(IntEnum):
    """What a simulated thread does next."""

    PYTHON = 0
    SLEEP = 1
    LAUNCH = 2
    COPY_OUT = 3
    SYNC_STREAM = 4
    SYNC_DEVICE = 5
    MALLOC = 6
    FREE = 7
    PUT = 8
    GET = 9
    STREAM_WAIT = 10


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction. ``ns`` is its host time, ``device_ns`` that of the kernel or copy it makes
    on ``stream`` (for ``SYNC_DEVICE`` and ``FREE`` the device); ``other`` is the queue, or the
    stream whose work so far ``STREAM_WAIT`` makes ``stream`` wait for. ``name`` names Python.
    ``native`` instructions are traced as those of a thread without Python frames."""

    kind: OpKind
    ns: int = 0
    device_ns: int = 0
    stream: int = 0
    other: int = 0
    name: str = ""
    native: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """``stream_device`` maps streams to devices; ``capacity`` is that of each queue.
    A launch waits while ``launch_limit`` others of its stream are not done. The tracer
    costs ``tracer_ns`` a call, half before the call's recorded start and half inside."""

    stream_device: tuple[int, ...] = (0,)
    capacity: tuple[int, ...] = ()
    latency_ns: int = 2_000
    spacing_ns: int = 1_000
    queue_ns: int = 1_000
    launch_limit: int = 1_000_000
    tracer_ns: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """Something recorded: of a thread (or stream) from start to end, and the ``Op`` it stands
    for. ``link`` ties a kernel to its call; of queue operations it is the item's number."""

    owner: int
    start_ns: int
    end_ns: int
    op: Op
    link: int = -1


@dataclass(slots=True)
class Trace:
    """What was recorded, and when each thread ended."""

    calls: list[Span] = field(default_factory=list)
    kernels: list[Span] = field(default_factory=list)
    queue_ops: list[Span] = field(default_factory=list)
    stretches: list[Span] = field(default_factory=list)
    end_ns: dict[int, int] = field(default_factory=dict)
