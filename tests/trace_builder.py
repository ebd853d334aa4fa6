"""Builds small traces row by row, as the profiler would have delivered them."""

from __future__ import annotations

import numpy as np

from pytest_tokbudget.analysis.timeline import Timeline, Window
from pytest_tokbudget.analysis.trace_rows import KnownThread, timeline_from_rows

MAIN, LOADER = 101, 102
THREADS = [KnownThread("MainThread", 0, MAIN), KnownThread("loader-0", 0, LOADER)]


class TraceBuilder:
    """Collects rows; times in ns after an arbitrary beginning."""

    def __init__(self, begin_ns: int = 1_000_000_000) -> None:
        self.begin_ns = begin_ns
        self._names: dict[str, int] = {}
        self._rows: list[list[int]] = []
        self._correlation = 0

    def kernel(
        self,
        start: int,
        dur: int,
        *,
        device: int = 0,
        stream: int = 7,
        name: str = "gemm",
        correlation: int = 0,
        nbytes: int = -1,
    ) -> None:
        self._add(name, (nbytes, 1, device, stream), start, dur, correlation)

    def call(
        self, name: str, start: int, dur: int, *, thread: int = MAIN, correlation: int | None = None
    ) -> int:
        if correlation is None:
            self._correlation += 1
            correlation = self._correlation
        self._add(name, (-1, 0, 99, thread), start, dur, correlation)
        return correlation

    def launch(
        self,
        at: int,
        start: int,
        dur: int,
        *,
        call_dur: int = 3_000,
        thread: int = MAIN,
        device: int = 0,
        stream: int = 7,
        name: str = "gemm",
    ) -> None:
        correlation = self.call("cudaLaunchKernel", at, call_dur, thread=thread)
        self.kernel(start, dur, device=device, stream=stream, name=name, correlation=correlation)

    def sync_record(self, name: str, *, device: int, stream: int, correlation: int) -> None:
        self._add(name, (-1, 1, device, stream), 0, 0, correlation)

    def stall(self, start: int, dur: int) -> None:
        self._add("Activity Buffer Request", (-1, 0, -1, 0), start, dur, 0)

    def timeline(
        self,
        start: int,
        end: int,
        *,
        steps: int = 1,
        step_ends: tuple[int, ...] = (),
        devices: tuple[int, ...] | None = None,
    ) -> Timeline:
        window = Window(
            self.begin_ns + start,
            self.begin_ns + end,
            steps,
            tuple(self.begin_ns + one for one in step_ends),
        )
        rows = np.array(self._rows, np.int64).reshape(-1, 11)
        return timeline_from_rows(rows, tuple(self._names), THREADS, window, devices)

    def _add(
        self, name: str, where: tuple[int, int, int, int], start: int, dur: int, correlation: int
    ) -> None:
        name_id = self._names.setdefault(name, len(self._names))
        nbytes, on_device, device, resource = where
        self._rows.append(
            [
                0, name_id, nbytes, on_device, device, resource,
                self.begin_ns + start, dur, correlation, 0, 0,
            ]
        )  # fmt: skip
