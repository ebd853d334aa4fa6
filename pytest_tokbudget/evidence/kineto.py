"""The Kineto probe: the device activities of a stretch of steps, through ``torch.profiler``.

It runs in the evidence pass only: a process stays slow after it. CUDA activities alone are far
less intrusive than CPU operators with them, so the ledger rests on those. The profiler's own
buffers are requested at the first calls after ``start``: run ``LEAD_IN_STEPS`` before the window.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_tokbudget.analysis.timeline import IntArray, Timeline, Window
from pytest_tokbudget.analysis.trace_rows import KnownThread, timeline_from_rows
from pytest_tokbudget.records.base import Unavailable

from .kineto_rows import rows_of
from .thread_table import known_threads, merged, with_autograd_names

LEAD_IN_STEPS = 3
LEAST_STEPS = 100
"""Fewer steps give no stable gaps (the recordings behind the design had 14)."""

Quiesce: TypeAlias = Callable[[], AbstractContextManager[Sequence[str]]]
"""Enter: no worker touches a device any more until the exit. Gives the names of those that did not
come to a stand."""

_OPTIONS = {
    "enable_cuda_sync_events": True,
    "profile_all_threads": True,
    "expose_kineto_event_metadata": True,
}


@dataclass(frozen=True, slots=True)
class RawTrace:
    """What the profiler delivered, uninterpreted. ``rows``: ``analysis/trace_rows.py``.

    ``missing`` are options that this torch does not have, e.g. ``profile_all_threads``.
    """

    rows: IntArray
    names: tuple[str, ...]
    threads: list[KnownThread]
    missing: tuple[str, ...]
    stop_seconds: float
    read_seconds: float

    def timeline(self, window: Window, devices: tuple[int, ...] | None = None) -> Timeline:
        """Sort the rows into the event arrays of one window; times in Unix ns."""
        return with_autograd_names(
            timeline_from_rows(self.rows, self.names, self.threads, window, devices)
        )


class KinetoProbe:
    """Traces from ``start`` to ``stop``; one use.

    ``activities``: ``("cuda",)`` for the ledger, ``("cpu", "cuda")`` for names, ``("cpu",)`` where
    there is no accelerator. Start it while no worker is inside a step.
    """

    def __init__(self, activities: Sequence[str] = ("cuda",)) -> None:
        self._activities = tuple(activities)
        self._profiler: Any = None
        self._missing: tuple[str, ...] = ()
        self._threads: list[KnownThread] = []

    def start(self) -> Unavailable | None:
        """Begin to trace; ``Unavailable`` says why it cannot be done here and now."""
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        self._threads = known_threads()
        try:
            self._profiler = self._profile()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._profiler.start()
        except RuntimeError as error:
            self._profiler = None
            return _explained(error)
        return None

    def stop(
        self, quiesce: Quiesce, roles: Mapping[int, str] | None = None
    ) -> RawTrace | Unavailable:
        """Stop with the workers standing and every device synchronized, and read the events.

        When a worker does not come to a stand the profiler is left running until the process ends:
        stopping it under running workers crashes (use after free in Kineto).
        """
        if self._profiler is None:
            return Unavailable("the profiler was not started")
        with quiesce() as running:
            if running:
                return Unavailable(
                    f"the profiler could not be stopped safely: {', '.join(running)} did not come "
                    "to a mark",
                    "call step_end() or a recorder queue regularly in every worker",
                )
            begun = time.perf_counter()
            try:
                self._synchronize()
                self._stop()
            except RuntimeError as error:
                return _explained(error)
            threads = merged(self._threads, known_threads(roles))
        return self._read(threads, begun)

    def _refusal(self) -> Unavailable | None:
        torch = sys.modules.get("torch")
        if torch is None:
            return Unavailable("the workload did not import torch", "only torch can be traced")
        if not torch.profiler.kineto_available():
            return Unavailable(
                f"torch {torch.__version__} was built without Kineto", "install a torch wheel"
            )
        if torch.autograd._profiler_enabled():
            return Unavailable(
                "a torch profiler is running already, and there can be only one",
                "stop your own profiler in this test",
            )
        if "cuda" in self._activities and not torch.cuda.is_available():
            return Unavailable("torch sees no CUDA device", "run on a machine with an NVIDIA GPU")
        return None

    def _profile(self) -> Any:
        from torch.profiler import ProfilerActivity, profile

        which = {"cpu": ProfilerActivity.CPU, "cuda": ProfilerActivity.CUDA}
        options, self._missing = _supported_options()
        return profile(
            activities=[which[one] for one in self._activities], experimental_config=options
        )

    def _synchronize(self) -> None:
        torch = sys.modules["torch"]
        if "cuda" in self._activities:
            for device in range(torch.cuda.device_count()):
                if torch.cuda.memory_reserved(device) > 0:
                    torch.cuda.synchronize(device)

    def _stop(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._profiler.stop()

    def _read(self, threads: list[KnownThread], begun: float) -> RawTrace | Unavailable:
        stopped = time.perf_counter()
        result = self._profiler.profiler.kineto_results
        collecting = gc.isenabled()
        gc.disable()  # a million short-lived wrappers otherwise start it again and again
        try:
            rows, names = rows_of(result.events())
        finally:
            if collecting:
                gc.enable()
        self._profiler = None
        if "cuda" in self._activities and not (rows[:, 3] == 1).any():
            return Unavailable(
                "the profiler delivered no device events: CUPTI is in use by another tool, or the "
                "driver refuses it",
                "end nsys, ncu, DCGM profiling or another profiler on this GPU; in a container "
                "allow performance counters (NVreg_RestrictProfilingToAdminUsers=0)",
            )
        read = time.perf_counter()
        return RawTrace(rows, names, threads, self._missing, stopped - begun, read - stopped)


def _supported_options() -> tuple[Any, tuple[str, ...]]:
    """The experimental options that this torch knows, and those it does not."""
    from torch._C import _profiler

    config: Any = _profiler._ExperimentalConfig
    chosen = dict(_OPTIONS)
    missing: list[str] = []
    for name in _OPTIONS:
        try:
            config(**{name: True})
        except TypeError:
            missing.append(name)
            del chosen[name]
    return config(**chosen), tuple(missing)


def _explained(error: RuntimeError) -> Unavailable:
    """A CUDA or CUPTI error in the words of somebody who must do something about it."""
    text = str(error).strip().split("\n", 1)[0]
    lower = text.lower()
    if "busy" in lower or "multiple_subscribers" in lower:
        return Unavailable(f"CUPTI is busy: {text}", "end the other profiler on this GPU")
    if "profiler" in lower and ("already" in lower or "enabled" in lower):
        return Unavailable(
            f"a torch profiler is running already: {text}", "stop your own profiler in this test"
        )
    if "cuda error" in lower or "device" in lower:
        return Unavailable(
            f"the device failed while it was traced: {text}",
            "see nvidia-smi and the kernel log (Xid) for the device's state",
        )
    return Unavailable(f"the profiler failed: {text}")
