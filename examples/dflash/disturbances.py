"""What else goes on in a training process: logs, stalls, garbage, busy helper threads."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO


class StepLog:
    """Writes a line every ``every`` steps and forces it to the disk. Thread-safe."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._file: IO[str] | None = None
        self._lock = threading.Lock()
        self.lines = 0

    def is_due(self, step: int) -> bool:
        """Whether step ``step`` of a worker is logged."""
        return step % self._every == 0

    def write(self, text: str) -> None:
        """Append ``text`` and wait until it is on the disk."""
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile("w+", prefix="dflash-", suffix=".log")  # noqa: SIM115
            self._file.write(text + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
            self.lines += 1

    def close(self) -> None:
        """Delete the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()


class CorrelatedStall:
    """After every ``every`` steps of all its workers together, all stand still for the same time.

    ``resume_ns`` is when they may go on, in monotonic ns; 0 before the first stall. ``every`` 0
    never stalls.
    """

    def __init__(self, every: int, duration_ms: float) -> None:
        self._every, self._duration_ns = every, round(duration_ms * 1e6)
        self._lock = threading.Lock()
        self._steps = 0
        self.stalls = 0
        self.resume_ns = 0

    def step_ended(self, end_ns: int) -> None:
        """Count a step that ended at ``end_ns``."""
        with self._lock:
            self._steps += 1
            if self._every and self._steps % self._every == 0:
                self.resume_ns = end_ns + self._duration_ns
                self.stalls += 1

    def stand(self) -> None:
        """Wait until the workers may go on."""
        while (left := self.resume_ns - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)


class Garbage:
    """Millions of live objects, and steps that keep making more: full collections take long."""

    LIVE = 1_000_000
    PER_STEP = 5_000

    def __init__(self) -> None:
        self.live = [[i] for i in range(self.LIVE)]
        self._recent: deque[list[list[int]]] = deque(maxlen=200)

    def step(self) -> None:
        """Make a step's worth of objects that live for a while."""
        self._recent.append([[i] for i in range(self.PER_STEP)])


def spin(stopped: Callable[[], bool]) -> int:
    """Compute in pure Python, holding the GIL whenever it can, until ``stopped()``."""
    turns = 0
    while not stopped():
        for number in range(2_000):
            turns += number & 1
    return turns
