"""Pauses of Python's garbage collector, as its own callbacks tell them."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import dataclass, field

import numpy as np

from pytest_tokbudget.analysis.causes import Cause, HostLabels
from pytest_tokbudget.analysis.timeline import ThreadInfo

_FULL = 2


@dataclass(frozen=True, slots=True)
class GcPauses:
    """One entry a collection, in order of their ends. Times are Unix ns, as in a trace;
    ``native_id`` is the thread that collected (the others wait for the interpreter meanwhile)."""

    start_ns: list[int] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)
    generation: list[int] = field(default_factory=list)
    native_id: list[int] = field(default_factory=list)

    def counters_per_step(self, steps: int) -> dict[str, float]:
        """Counters as ``run.json`` names them; not exact, so they never gate."""
        pause_ns = sum(end - start for start, end in zip(self.start_ns, self.end_ns))
        return {
            "gc_collections": len(self.start_ns) / steps,
            "gc_full_collections": self.generation.count(_FULL) / steps,
            "gc_pause_ms": pause_ns / 1e6 / steps,
        }

    def labels(self, threads: tuple[ThreadInfo, ...]) -> HostLabels:
        """The pauses as stretches of the threads of a trace; others are left out."""
        index = {one.native_id: at for at, one in enumerate(threads) if one.native_id}
        kept = [at for at, one in enumerate(self.native_id) if one in index]
        return HostLabels(
            thread=np.array([index[self.native_id[at]] for at in kept], np.int32),
            start_ns=np.array([self.start_ns[at] for at in kept], np.int64),
            end_ns=np.array([self.end_ns[at] for at in kept], np.int64),
            cause=np.full(len(kept), Cause.GARBAGE_COLLECTION, np.int8),
        )


class GcWatch:
    """Listens from ``start`` to ``stop``; about a microsecond a collection."""

    def __init__(self) -> None:
        self._pauses = GcPauses()
        self._begun: dict[int, int] = {}

    def start(self) -> None:
        """Begin to listen."""
        gc.callbacks.append(self._heard)

    def stop(self) -> GcPauses:
        """Stop, and return the collections that ended meanwhile."""
        gc.callbacks.remove(self._heard)
        return self._pauses

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        thread = threading.get_native_id()
        if phase == "start":
            self._begun[thread] = time.time_ns()
        elif (begun := self._begun.pop(thread, None)) is not None:
            pauses = self._pauses
            pauses.start_ns.append(begun)
            pauses.end_ns.append(time.time_ns())
            pauses.generation.append(info["generation"])
            pauses.native_id.append(thread)
