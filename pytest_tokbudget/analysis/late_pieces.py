"""The host-late time of a device by class: the gaps before the k-th launch of each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .causes import Cause
from .gap_classes import step_positions
from .ledger import DeviceLedger
from .timeline import IntArray, Timeline


@dataclass(frozen=True, slots=True)
class LatePieces:
    """The host-late pieces of one class: one device, one ``owner`` (the Python thread whose stacks
    explain them, −1: none), one position in the step."""

    device: int
    owner: int
    start_ns: IntArray
    end_ns: IntArray


def late_classes(timeline: Timeline, device: DeviceLedger) -> list[LatePieces]:
    """Unattributed host-late pieces by the position of the launch that ended their gap."""
    segments, gaps = device.segments, device.gaps
    late = np.flatnonzero(segments.cause == Cause.HOST_UNATTRIBUTED)
    if not len(late):
        return []
    gap = segments.gap[late]
    position = _positions(timeline)[np.maximum(gaps.call[gap], 0)]
    position = np.where(gaps.call[gap] >= 0, position, -1)
    keys = np.stack((gaps.owner[gap].astype(np.int64), gaps.thread[gap].astype(np.int64), position))
    _, which = np.unique(keys, axis=1, return_inverse=True)
    which = which.reshape(-1)
    found = []
    for one in range(int(which.max()) + 1):
        mine = late[which == one]
        owner = int(gaps.owner[segments.gap[mine[0]]])
        start, end = segments.start_ns[mine], segments.end_ns[mine]
        found.append(LatePieces(device.device, owner, start, end))
    return found


def _positions(timeline: Timeline) -> IntArray:
    """Position of each host call in its thread's step; −1 where its steps do not repeat."""
    calls, window = timeline.host_calls, timeline.window
    found: IntArray = np.full(len(calls), -1, np.int64)
    inside = (calls.start_ns >= window.start_ns) & (calls.start_ns < window.end_ns)
    for thread in np.unique(calls.thread[inside]):
        mine = np.flatnonzero(inside & (calls.thread == thread))
        mine = mine[np.argsort(calls.start_ns[mine], kind="stable")]
        position = step_positions(calls.start_ns[mine], calls.kind[mine], window)
        if position is not None:
            found[mine] = position
    return found
