"""All CPU evidence of this process, taken while its workload runs: one entry, one record."""

from __future__ import annotations

import time
from collections.abc import Iterable

from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.cpu import CpuRecord, ThreadClocks
from pytest_tokbudget.records.marks import MarkSeries

from .beacon import Beacon
from .collector import collector_pauses
from .gc_pauses import GcPauses, GcWatch
from .interpreter import read_interpreter
from .stacks import StackSampler
from .threads import ThreadClockReader

_SAME_LOOK_NS = 50_000_000


class CpuEvidence:
    """``start()`` while the workload runs, ``stop()`` while it still does, ``record(…)`` later.

    Nothing is attached, no thread and no process of ours lives before ``start`` and after ``stop``.
    ``stop`` only collects; ``record`` computes, which a workload that fights for the GIL would
    slow down a hundredfold, so call it when that has ended. Neither ever raises for a sampler that
    is missing, refused or killed: the record then says why under ``unavailable``.
    """

    def __init__(self, program: str | None = None) -> None:
        self._beacon = Beacon()
        self._stacks = StackSampler(self._beacon, program)
        self._clocks = ThreadClockReader()
        self._collector = GcWatch()
        self._pauses = GcPauses()
        self._window = (0, 0)
        self._runs = False

    def __enter__(self) -> CpuEvidence:  # noqa: PYI034 - Self is newer than 3.10
        """Start the samplers."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self.stop()

    def start(self) -> None:
        """Start the samplers; returns when all of them sample (1 to 5 s)."""
        self._runs = True
        self._collector.start()
        self._beacon.start()
        try:
            self._clocks.start()
            self._stacks.start()
        except BaseException:  # interrupted: leave nothing behind
            self.stop()
            raise
        self._window = (time.monotonic_ns(), 0)

    def stop(self) -> None:
        """End the samplers and take what they have; does nothing where none runs."""
        if not self._runs:
            return
        self._runs = False
        self._window = (self._window[0], time.monotonic_ns())
        self._stacks.stop()
        self._clocks.stop()
        self._beacon.stop()
        self._pauses = self._collector.stop()

    def record(self, marks: Iterable[MarkSeries] = ()) -> CpuRecord:
        """Compute the record; ``marks`` tell the roles of threads."""
        roles = {one.native_id: one.role for one in marks if one.native_id}
        clocks = self._clocks.record(roles)
        unavailable: dict[str, str] = {}
        lifetimes: dict[int, tuple[int, int]] = {}
        if isinstance(clocks, Unavailable):
            unavailable["thread clocks"] = str(clocks)
        else:
            lifetimes = lifetimes_ns(clocks)
        stacks = self._stacks.record(lifetimes)
        if isinstance(stacks, Unavailable):
            unavailable["stacks"] = str(stacks)
        return CpuRecord(
            start_ns=self._window[0],
            end_ns=self._window[1],
            stacks=None if isinstance(stacks, Unavailable) else stacks,
            clocks=None if isinstance(clocks, Unavailable) else clocks,
            pauses=collector_pauses(self._pauses, time.time_ns() - time.monotonic_ns()),
            interpreter=read_interpreter(self._beacon),
            workers=sorted(roles),
            unavailable=unavailable,
        )


def lifetimes_ns(clocks: ThreadClocks) -> dict[int, tuple[int, int]]:
    """First and last moment each thread was seen; those seen to the end may live on."""
    last = max(one.times_ns[-1] for one in clocks.threads)
    threads = [one for one in clocks.threads if not one.is_process]
    # All threads of one look are read within milliseconds of each other, looks are further apart.
    until_the_end = last - _SAME_LOOK_NS
    return {
        one.native_id: (one.times_ns[0], one.times_ns[-1])
        for one in threads
        if one.times_ns[-1] < until_the_end
    }
