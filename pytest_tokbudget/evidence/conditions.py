"""The conditions of a session, read by the measuring process before and after it steps."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType, MethodType
from typing import final

import psutil

from ..records.base import Unavailable
from ..records.conditions import Conditions
from ..records.telemetry import MachineWatch
from .host import usable_cores
from .nvml import DriverReader, Nvml
from .telemetry import Telemetry
from .visible_devices import visible_devices

_PID = re.compile(r"\((\d+)\)$")
_TASKS = Path("/proc/self/task")


@final
class ConditionsReader:
    """Reads on entering and at ``stop``, both in the thread that measures.

    GPUs are watched in between from another process (``Telemetry``), on machines that have any.
    ``tasks`` is where the kernel shows the threads of this process.
    """

    def __init__(
        self,
        driver: DriverReader | None = None,
        environment: Mapping[str, str] | None = None,
        tasks: Path = _TASKS,
    ) -> None:
        self._driver = Nvml() if driver is None else driver
        self._environment = dict(os.environ if environment is None else environment)
        self._tasks = tasks
        self._tracers: list[str] = []
        self._unavailable: dict[str, str] = {}
        self._telemetry: Telemetry | None = None

    def __enter__(self) -> ConditionsReader:
        """Take the first readings; never raises."""
        self._tracers = attached_tracers()
        self._telemetry = self._started_telemetry()
        self._waits_ns = self._core_waits_ns()
        self._own_s, self._cpu = _own_cpu_s(), psutil.cpu_times()
        self._start_ns = time.monotonic_ns()
        return self

    def __exit__(self, *_: object) -> None:
        """End the watching process where a measurement broke off before ``stop``."""
        if self._telemetry is not None:
            self._telemetry.stop()
            self._telemetry = None

    def stop(self, pass_unix_ns: tuple[int, int], workers: Sequence[int]) -> Conditions:
        """Take the last readings.

        ``pass_unix_ns`` are the ends of the timing pass; ``workers`` the native ids of the threads
        that made counting marks, of which the one that waited longest for a core is reported.
        """
        elapsed_ns = max(1, time.monotonic_ns() - self._start_ns)
        watch = self._watched(pass_unix_ns)
        before, now = self._waits_ns, self._core_waits_ns()
        waited = [now[one] - before.get(one, 0) for one in workers if one in now]
        if not waited:
            self._unavailable["core_wait_share"] = "the kernel keeps no account of run queues"
        steal, others = _shares(self._cpu, psutil.cpu_times(), _own_cpu_s() - self._own_s)
        return Conditions(
            tracers=list(dict.fromkeys([*self._tracers, *attached_tracers()])),
            launch_blocking=self._environment.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"),
            seconds=elapsed_ns / 1e9,
            core_wait_share=max(waited) / elapsed_ns if waited else None,
            steal_share=steal,
            others_busy_share=others,
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            usable_cores=usable_cores(),
            of_controller=_of_ancestors(watch),
            watch=watch,
            unavailable=self._unavailable,
        )

    def _started_telemetry(self) -> Telemetry | None:
        view = self._driver.read()
        if isinstance(view, Unavailable):
            self._unavailable["watch"] = str(view)
            return None
        if not visible_devices(view.devices, self._environment).devices:
            self._unavailable["watch"] = "this process sees no GPU"
            return None
        telemetry = Telemetry(self._driver, self._environment)
        failed = telemetry.start()
        if failed is not None:
            self._unavailable["watch"] = str(failed)
        return telemetry if failed is None else None

    def _watched(self, pass_unix_ns: tuple[int, int]) -> MachineWatch | None:
        if self._telemetry is None:
            return None
        watch = self._telemetry.stop(pass_unix_ns)
        self._telemetry = None
        if isinstance(watch, Unavailable):
            self._unavailable["watch"] = str(watch)
            return None
        return watch

    def _core_waits_ns(self) -> dict[int, int]:
        """Time spent ready to run without a core, by thread (proc(5), ``schedstat``)."""
        waits = {}
        for task in self._tasks.glob("[0-9]*"):
            try:
                fields = (task / "schedstat").read_text().split()
            except OSError:
                continue
            if len(fields) == 3:
                waits[int(task.name)] = int(fields[1])
        return waits


def attached_tracers() -> list[str]:
    """Name what is called for lines or calls of this thread: debuggers, coverage, profilers."""
    hooks = {
        "sys.settrace": sys.gettrace(),
        "sys.setprofile": sys.getprofile(),
        "threading.settrace": threading.gettrace(),
        "threading.setprofile": threading.getprofile(),
    }
    found = [f"{_name_of(hook)} ({how})" for how, hook in hooks.items() if hook is not None]
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        found += [
            f"{monitoring.get_tool(number)} (sys.monitoring)"
            for number in range(6)
            if monitoring.get_tool(number) is not None and monitoring.get_events(number)
        ]
    return found


def _name_of(hook: object) -> str:
    if isinstance(hook, (FunctionType, MethodType)):
        return f"{hook.__module__}.{hook.__qualname__}"
    return f"{type(hook).__module__}.{type(hook).__qualname__}"


def _own_cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def _shares(before: object, now: object, own_s: float) -> tuple[float | None, float | None]:
    """Shares of all cores' time that went to the hypervisor and to other processes."""
    # guest time is contained in user time (proc(5)), so it would count twice.
    names = [name for name in getattr(now, "_fields", ()) if not name.startswith("guest")]
    spent = {name: getattr(now, name) - getattr(before, name) for name in names}
    total = sum(spent.values())
    if total <= 0:
        return None, None
    busy = total - sum(spent.get(name, 0.0) for name in ("idle", "iowait", "steal"))
    steal = spent["steal"] / total if "steal" in spent else None
    return steal, min(1.0, max(0.0, (busy - own_s) / total))


def _of_ancestors(watch: MachineWatch | None) -> list[str]:
    """Those of the foreign processes that started this one."""
    if watch is None:
        return []
    ancestors = {one.pid for one in psutil.Process().parents()}
    named = {name for device in watch.devices for name in device.foreign}
    pids = {name: match[1] for name in named if (match := _PID.search(name))}
    return sorted(name for name, pid in pids.items() if int(pid) in ancestors)
