"""The causes of host and device time that a replay can take away, by the names they are told by."""

from __future__ import annotations

from enum import Enum


class ReplayCause(str, Enum):
    """What can be taken away, in the order in which it is."""

    WAIT = "waiting for others"
    COPY = "copies"
    ALLOCATOR = "allocator"
    SYNC = "synchronization"
    SLEEP = "sleep"
    PYTHON = "python"
    DISPATCH = "dispatch"
    LAUNCH = "launch calls"
    SPACING = "kernel spacing"
    BUSY = "kernels"
