"""The program a trace tells of: what each thread did between its calls, and what it gave devices.

A *lane* is one chain of host events in which each follows the one before: a Python thread, together
with the threads that work in its stead (autograd's, during its backward call). Columns are float64
nanoseconds; calls are sorted by lane, then time; kernels by the call that launched them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .timeline import BoolArray, CodeArray, IntArray, SmallIntArray

FloatArray: TypeAlias = npt.NDArray[np.float64]


class CallKind(IntEnum):
    """What a host event is, as far as the causes of a ledger tell events apart."""

    LAUNCH = 0
    COPY = 1
    ALLOC = 2
    SYNC = 3
    OTHER = 4
    PUT = 5
    GET = 6
    TAIL = 7


class Waits(IntEnum):
    """What a host event waits for. ``target`` is a device (as a dense index), a stream (dense), a
    kernel, or a queue; ``COPY`` waits for the copy that the call itself makes."""

    NOTHING = 0
    DEVICE = 1
    STREAM = 2
    KERNEL = 3
    COPY = 4
    PUT = 5
    GET = 6


class LabelKind(IntEnum):
    """What a thread did while it made no call: waited for another, slept, or ran named Python.
    ``CALL``: the line that made a call."""

    WAIT = 0
    SLEEP = 1
    PYTHON = 2
    CALL = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """Where named Python stands. ``function`` alone is enough for a name."""

    function: str
    file: str | None = None
    line: int | None = None

    @property
    def place(self) -> tuple[str, str | None]:
        """Function and file: what stays the same from line to line."""
        return self.function, self.file

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})" if self.file else self.function


@dataclass(frozen=True, slots=True)
class Labels:
    """Named stretches of threads, not overlapping within a thread; the parts of them that fall into
    gaps between calls count, the rest is ignored. ``thread`` indexes ``Timeline.threads``,
    ``frame`` indexes ``frames``; ``samples`` is how many samples name each frame."""

    thread: SmallIntArray
    start_ns: IntArray
    end_ns: IntArray
    kind: CodeArray
    frame: SmallIntArray
    frames: tuple[Frame, ...]
    samples: tuple[int, ...]

    @classmethod
    def none(cls) -> Labels:
        """No label at all."""
        empty, small = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return cls(small, empty, empty, np.zeros(0, np.int8), small, (), ())


@dataclass(frozen=True, slots=True)
class QueueOps:
    """Puts and gets as the recorder's queue proxy saw them, in the trace's clock.

    ``get[i]`` is true for a get; ``item`` numbers the items of a queue in its order: a get of item
    n cannot end before the put of item n ended. ``capacity`` is 0 for an unbounded queue.
    """

    thread: SmallIntArray
    queue: SmallIntArray
    get: BoolArray
    item: IntArray
    start_ns: IntArray
    end_ns: IntArray
    names: tuple[str, ...]
    capacity: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HostProgram:
    """Host events, columns of one length.

    ``own_ns`` is the time on a CPU before the call (of which ``named_ns`` under the frame
    ``named``, −1 for none), ``sleep_ns`` and ``wait_ns`` the time off it (before the own time where
    ``idle_first``, else after it), ``stall_ns`` what the profiler itself held the thread up.
    ``call_ns`` is the call less what it waited for (``blocked_ns``). ``records`` counts the traced
    records that end here (the call and the operators before it); ``python`` is 1 where the own time
    is that of a Python thread, which needs the interpreter's lock, 0 where it is a stand-in's.
    """

    kind: CodeArray
    own_ns: FloatArray
    named_ns: FloatArray
    named: SmallIntArray
    sleep_ns: FloatArray
    wait_ns: FloatArray
    idle_first: BoolArray
    stall_ns: FloatArray
    call_ns: FloatArray
    blocked_ns: FloatArray
    records: FloatArray
    python: FloatArray
    waits: CodeArray
    target: IntArray
    item: IntArray

    def __len__(self) -> int:
        return len(self.own_ns)


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """Kernels, copies and sets in the order of their launching ``call``. ``spacing_ns`` is the gap
    to the kernel before it where both were queued; ``after`` is the kernel of another stream that
    it waited for (−1: none), ``lag_ns`` how long after that one's end it began (of a copy that its
    call waits for: how long after the beginning of the call)."""

    call: IntArray
    stream: SmallIntArray
    kind: CodeArray
    dur_ns: FloatArray
    spacing_ns: FloatArray
    after: IntArray
    lag_ns: FloatArray

    def __len__(self) -> int:
        return len(self.dur_ns)


@dataclass(frozen=True, slots=True)
class Program:
    """A window as a program that can be run again.

    ``lane_bounds``, shape (lanes + 1,), cut the host columns; ``lane_threads`` are the indices of
    the Python threads; ``main`` is the lane that counts the steps. ``stream_device`` maps dense
    streams to devices, ``carried_ns`` is when each was done with what the window found on it,
    ``latency_ns`` the time from the end of a launch call to the start of its kernel on an idle
    stream (may be negative). ``launch_limit`` is the number of kernels a stream queued before
    launches blocked, 0 where the trace never got there. ``closing_streams`` are those of the
    counting lane where its window ended with a synchronization (else none).
    """

    host: HostProgram
    device: DeviceProgram
    lane_bounds: IntArray
    lane_threads: tuple[int, ...]
    main: int
    stream_device: IntArray
    carried_ns: FloatArray
    latency_ns: FloatArray
    launch_limit: int
    closing_streams: tuple[int, ...]
    steps: int
    wall_ns: float
    frames: tuple[Frame, ...] = ()
    frame_samples: tuple[int, ...] = ()
    queue_names: tuple[str, ...] = ()
    queue_capacity: tuple[int, ...] = ()
    launch_call_ns: float = 0.0
    python_lanes: int = field(default=1)
