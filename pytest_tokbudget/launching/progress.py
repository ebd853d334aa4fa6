"""The progress block: a few integers that a worker writes and other processes read.

A memory-mapped file, so that a store costs some 40 ns, needs no system call and no cooperation of
the reader, and the last values outlive a process that was killed.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path

LAST_MARK_NS = 0
"""When the last counting mark was made, monotonic ns."""
ALLOWED_SILENCE_NS = 1
"""How long no counting mark may come, ns; 0 means without limit."""
COUNTING_MARKS = 2
"""Counting marks so far."""
PHASE = 3
"""A code of ``PHASES``, or their number plus the one in which the measurement failed."""
WORKER_PID = 4
"""The worker's process id, which is its process group too; 0 before it was started."""
WAIT_STATUS = 5
"""The worker's wait status plus one, as ``os.waitpid`` gives it; 0 while it runs."""
ENDING = 6
"""Why the guard ended the worker, a code of ``guard.Ending``; 0 if it did not."""
RESULT_NS = 7
"""When the worker had nothing more to do than to exit, monotonic ns; 0 before."""

SLOT_COUNT = 8
SLOT_BYTES = 8

PHASES = ("setup", "warm-up", "timing pass", "evidence pass", "done")


def phase_name(phase: int) -> str:
    """The name of a phase code: 0 setup, 1 warm-up, 2 timing, 3 evidence, 4 done; from 5 on, what
    follows upon a failure in phase 0, 1 …"""
    if not 0 <= phase < 2 * len(PHASES):
        return f"unknown phase {phase}"
    name = PHASES[phase % len(PHASES)]
    return name if phase < len(PHASES) else f"the end after a failed {name}"


def last_phase(phase: int) -> str:
    """The name of the phase that the measurement came to, whether it failed there or not."""
    return phase_name(phase - len(PHASES) if phase >= len(PHASES) else phase)


@dataclass(frozen=True)
class ProgressSnapshot:
    """The block at one moment; times in monotonic ns."""

    last_mark_ns: int
    allowed_silence_ns: int
    counting_marks: int
    phase: int


class ProgressBlock:
    """``SLOT_COUNT`` signed 64-bit integers in a file mapped into memory.

    ``slots`` is a memory view cast to ``'q'``; indices are the constants above. Slots 0 to 3 belong
    to the recorder, the rest to the launching room.
    """

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        """Map ``path``; ``create`` makes it anew, all zero. Raises OSError."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_TRUNC if create else 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            if create:
                os.ftruncate(descriptor, SLOT_COUNT * SLOT_BYTES)
            self._map = mmap.mmap(descriptor, SLOT_COUNT * SLOT_BYTES)
        finally:
            os.close(descriptor)
        self.slots: memoryview[int] = memoryview(self._map).cast("q")

    def snapshot(self) -> ProgressSnapshot:
        """The recorder's slots now. Each slot is read whole; two slots may be of two moments."""
        return ProgressSnapshot(*self.slots[:WORKER_PID].tolist())

    def close(self) -> None:
        """Unmap the file; ``slots`` must not be used afterwards."""
        self.slots.release()
        self._map.close()
