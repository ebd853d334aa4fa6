"""A thread that sleeps in one of two functions by turns: what a sampler's clock is solved from.

It also tells how late a thread that wakes gets to run Python: the wait for the GIL, measured.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

NAME = "tokbudget-beacon"
PAUSE_S = (0.004, 0.012)
"""Short, for what tells the clock is the looks near a change."""


def beacon_a(seconds: float) -> None:
    """One of the two functions between which the beacon alternates."""
    time.sleep(seconds)


def beacon_b(seconds: float) -> None:
    """The other one."""
    time.sleep(seconds)


class Beacon:
    """``start``, then ``stop``. ``entered_ns`` are the moments it entered ``beacon_a`` (even
    entries) or ``beacon_b`` (odd ones), ``late_ns`` how late it woke from each."""

    def __init__(self) -> None:
        self.entered_ns: list[int] = []
        self.late_ns: list[int] = []
        self._core_wait_ns: tuple[int | None, int | None] = (None, None)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._blink, name=NAME, daemon=True)

    @property
    def native_id(self) -> int:
        """Native id of the thread; 0 before it started."""
        return self._thread.native_id or 0

    @property
    def core_wait_ms(self) -> float | None:
        """Mean time a wake waited for a core, in ms; ``None`` where the kernel does not say."""
        before, after = self._core_wait_ns
        if before is None or after is None or not self.late_ns:
            return None
        return (after - before) / 1e6 / len(self.late_ns)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End it, and wait until it has."""
        self._ended.set()
        self._thread.join()

    def _blink(self) -> None:
        # Pauses are random, lest they keep step with the sampler or with the workload.
        choose = random.Random(3).uniform
        before = _core_wait_ns()
        markers = (beacon_a, beacon_b)
        turn = 0
        while not self._ended.is_set():
            pause = choose(*PAUSE_S)
            entered = time.monotonic_ns()
            self.entered_ns.append(entered)
            markers[turn](pause)
            self.late_ns.append(time.monotonic_ns() - entered - round(pause * 1e9))
            turn = 1 - turn
        self._core_wait_ns = (before, _core_wait_ns())


def _core_wait_ns() -> int | None:
    try:
        fields = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()
        return int(fields[1])
    except (OSError, IndexError, ValueError):
        return None
