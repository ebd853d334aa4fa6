"""The event arrays of one traced window: numpy columns, integer nanoseconds, one clock.

Every analysis of a trace (ledger, replay, growth, counters) reads these. A column has one entry an
event; events are in no particular order unless a field says so. Times are Unix ns of the traced
process, as the profiler gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
SmallIntArray: TypeAlias = npt.NDArray[np.int32]
CodeArray: TypeAlias = npt.NDArray[np.int8]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


class DeviceKind(IntEnum):
    """What a device event is. The order is the ledger's priority where events overlap."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2
    SET = 3


class SyncKind(IntEnum):
    """What a synchronization record says: the host waited, or (``WAIT_EVENT``) a stream did."""

    CONTEXT = 0
    STREAM = 1
    EVENT = 2
    WAIT_EVENT = 3


class ApiKind(IntEnum):
    """What a host call into the driver or runtime does."""

    LAUNCH = 0
    GRAPH_LAUNCH = 1
    COPY = 2
    SET = 3
    SYNC = 4
    WAIT_EVENT = 5
    ALLOC = 6
    FREE = 7
    CAPTURE = 8
    OTHER = 9


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """One thread of the traced process. ``native_id`` is 0 where it could not be resolved.

    ``python`` is false for threads that never run Python (autograd's device threads).
    """

    native_id: int
    name: str
    role: str | None = None
    python: bool = True


@dataclass(frozen=True, slots=True)
class Window:
    """The measured stretch between two host marks.

    ``step_ends_ns``: ends of the steps inside, ascending, the last one at or before ``end_ns``;
    empty where they are not known.
    """

    start_ns: int
    end_ns: int
    steps: int
    step_ends_ns: tuple[int, ...] = ()

    @property
    def wall_ns(self) -> int:
        """Length of the window."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class DeviceEvents:
    """Kernels, copies and sets, annotations left out. All columns have the same length.

    ``kind`` holds ``DeviceKind`` codes, ``name`` indexes ``Timeline.names``, ``nbytes`` is −1 where
    the profiler does not say. ``correlation`` is that of the launching host call (never of an
    operator, whose ids overlap with these); all kernels of one graph launch share it.
    """

    device: SmallIntArray
    stream: IntArray
    start_ns: IntArray
    dur_ns: IntArray
    correlation: IntArray
    kind: CodeArray
    name: SmallIntArray
    nbytes: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class HostCalls:
    """Runtime and driver calls. ``thread`` indexes ``Timeline.threads``; ``kind``: ``ApiKind``."""

    thread: SmallIntArray
    start_ns: IntArray
    dur_ns: IntArray
    correlation: IntArray
    kind: CodeArray
    name: SmallIntArray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class SyncRecords:
    """The driver's own records of waiting, one per synchronizing call, with its correlation.

    ``stream`` is −1 for a whole context. They say which device a host call waited for.
    """

    device: SmallIntArray
    stream: IntArray
    start_ns: IntArray
    dur_ns: IntArray
    correlation: IntArray
    kind: CodeArray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class CpuOps:
    """Framework operators, where they were traced (``Timeline.ops`` is ``None`` where not)."""

    thread: SmallIntArray
    start_ns: IntArray
    dur_ns: IntArray
    name: SmallIntArray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Stalls:
    """Stretches in which the profiler itself held the program up ("Activity Buffer Request")."""

    start_ns: IntArray
    dur_ns: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Timeline:
    """One traced window of one process: everything the analyses need, and nothing derived.

    ``devices``: indices of the devices to account for, also those on which nothing ran.
    Events before and after the window may be present (they give the launches of its first kernels
    and end its last gap); analyses clip.
    """

    window: Window
    devices: tuple[int, ...]
    device_events: DeviceEvents
    host_calls: HostCalls
    syncs: SyncRecords
    stalls: Stalls
    names: tuple[str, ...]
    threads: tuple[ThreadInfo, ...]
    ops: CpuOps | None = None


def device_label(device: int) -> str:
    """Name of a device as all reports print it."""
    return f"cuda:{device}"
