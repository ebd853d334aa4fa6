"""The rows of the ledger: what a nanosecond of a device's wall time can be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from .timeline import CodeArray, IntArray, SmallIntArray, device_label


class Cause(IntEnum):
    """One label of one nanosecond. The first four are busy, in order of priority.

    Device side of a gap: ``SPACING`` between queued kernels, ``LAUNCH_LATENCY`` up to the measured
    floor, ``STREAM_DEPENDENCY`` on another device, ``INSIDE_GRAPH``, ``DEVICE_OTHER``.
    Host side: the launch itself (``LAUNCH_CALL``, ``COPY_CALL``), and what the launching thread
    did before it: from ``HOST_SYNC`` on. ``DATA_WAIT`` … ``INTERPRETER_WAIT`` come from labels of
    the threads' stacks; without them that time is ``HOST_UNATTRIBUTED``.
    """

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2
    SET = 3
    SPACING = 4
    LAUNCH_LATENCY = 5
    STREAM_DEPENDENCY = 6
    INSIDE_GRAPH = 7
    DEVICE_OTHER = 8
    LAUNCH_CALL = 9
    COPY_CALL = 10
    HOST_SYNC = 11
    ALLOCATOR = 12
    SERVING_DEVICE = 13
    HOST_API = 14
    DATA_WAIT = 15
    PYTHON = 16
    GARBAGE_COLLECTION = 17
    INTERPRETER_WAIT = 18
    HOST_UNATTRIBUTED = 19
    PROFILER = 20
    NO_LAUNCH_RECORD = 21
    NO_WORK = 22


BUSY = (Cause.COMPUTE, Cause.COMMUNICATION, Cause.COPY, Cause.SET)
HOST_LABELS = (
    Cause.DATA_WAIT,
    Cause.PYTHON,
    Cause.GARBAGE_COLLECTION,
    Cause.INTERPRETER_WAIT,
)
"""The causes that only a thread's stacks can give, strongest first where labels overlap."""

_TITLES = {
    Cause.COMPUTE: "compute",
    Cause.COMMUNICATION: "exposed communication",
    Cause.COPY: "exposed copy",
    Cause.SET: "exposed memset",
    Cause.SPACING: "kernel spacing",
    Cause.LAUNCH_LATENCY: "launch latency",
    Cause.STREAM_DEPENDENCY: "waiting for another device",
    Cause.INSIDE_GRAPH: "inside CUDA graph",
    Cause.DEVICE_OTHER: "device side, other",
    Cause.LAUNCH_CALL: "launch call",
    Cause.COPY_CALL: "copy call",
    Cause.HOST_SYNC: "host late: sync",
    Cause.ALLOCATOR: "host late: allocator",
    Cause.SERVING_DEVICE: "host late: serving another device",
    Cause.HOST_API: "host late: other API",
    Cause.DATA_WAIT: "host late: data wait",
    Cause.PYTHON: "host late: Python",
    Cause.GARBAGE_COLLECTION: "host late: garbage collection",
    Cause.INTERPRETER_WAIT: "host late: waiting for the GIL or a core",
    Cause.HOST_UNATTRIBUTED: "host late: unattributed",
    Cause.PROFILER: "profiler",
    Cause.NO_LAUNCH_RECORD: "no launch record",
    Cause.NO_WORK: "no work",
}
_WITH_PARTNER = {
    Cause.STREAM_DEPENDENCY: "waiting for {}",
    Cause.SERVING_DEVICE: "host late: serving {}",
    Cause.HOST_SYNC: "host late: sync on {}",
}


def cause_title(cause: Cause, partner: int = -1) -> str:
    """The row's name as it is stored and printed; ``partner`` is the other device, −1 for none."""
    if partner >= 0 and cause in _WITH_PARTNER:
        return _WITH_PARTNER[cause].format(device_label(partner))
    return _TITLES[cause]


@dataclass(frozen=True, slots=True)
class HostLabels:
    """What threads did outside driver calls, from their stacks: one entry a stretch of a thread.

    ``thread`` indexes ``Timeline.threads``; ``cause`` holds codes of ``HOST_LABELS``.
    """

    thread: SmallIntArray
    start_ns: IntArray
    end_ns: IntArray
    cause: CodeArray
