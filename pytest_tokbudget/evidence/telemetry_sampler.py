"""The process that watches the machine: samples NVML and the host's CPUs until its stdin closes.

A process of its own, so that the interpreter lock of the measured one is untouched. It imports
neither torch nor numpy, makes no CUDA context and changes nothing. One JSON line a sample.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import psutil

_OWN_EVERY_S = 1.0


class DeviceReader:
    """Reads one device: ``own`` is its handle (a MIG slice's, maybe), ``whole`` the GPU's.

    A slice has no clocks, power or temperature of its own: the GPU's are read.
    """

    def __init__(self, nvml: Any, uuid: str, parent: str) -> None:
        self._nvml, self.uuid = nvml, uuid
        self._own = nvml.nvmlDeviceGetHandleByUUID(uuid)
        self._whole = nvml.nvmlDeviceGetHandleByUUID(parent) if parent else self._own

    def read(self, own_pids: set[int]) -> dict[str, Any]:
        """One sample; ``errors`` maps each figure that the driver refused to its words."""
        nvml, whole = self._nvml, self._whole
        errors: dict[str, str] = {}

        def ask(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
            try:
                return function(*arguments)
            except nvml.NVMLError as error:
                errors[name] = str(error)
                return None

        power = ask("power_w", nvml.nvmlDeviceGetPowerUsage, whole)
        memory = ask("memory_used_bytes", nvml.nvmlDeviceGetMemoryInfo, self._own)
        busy = ask("utilization_pct", nvml.nvmlDeviceGetUtilizationRates, self._own)
        processes = ask("processes", nvml.nvmlDeviceGetComputeRunningProcesses, self._own)
        sample = {
            "sm_clock_mhz": ask(
                "sm_clock_mhz", nvml.nvmlDeviceGetClockInfo, whole, nvml.NVML_CLOCK_SM
            ),
            "memory_clock_mhz": ask(
                "memory_clock_mhz", nvml.nvmlDeviceGetClockInfo, whole, nvml.NVML_CLOCK_MEM
            ),
            "power_w": None if power is None else power / 1000,
            "temperature_c": ask(
                "temperature_c", nvml.nvmlDeviceGetTemperature, whole, nvml.NVML_TEMPERATURE_GPU
            ),
            "memory_used_bytes": None if memory is None else memory.used,
            "utilization_pct": None if busy is None else busy.gpu,
            "memory_utilization_pct": None if busy is None else busy.memory,
            "reasons": ask("reasons", _reasons_function(nvml), whole),
            "foreign": None if processes is None else foreign_processes(processes, own_pids),
        }
        return sample | {"errors": errors}


def _reasons_function(nvml: Any) -> Callable[[Any], int]:
    """Newer bindings renamed throttle reasons to clocks-event reasons."""
    newer = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    function: Callable[[Any], int] = newer or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    return function


def foreign_processes(processes: list[Any], own_pids: set[int]) -> list[str]:
    """Processes on the device that are not ours, by name where this process can see them.

    In a container NVML may give pids of the host's numbering. Then ours is not among them, and one
    that does not exist here is taken for ours.
    """
    pids = [int(one.pid) for one in processes]
    others = [pid for pid in pids if pid not in own_pids]
    named = [f"{name} ({pid})" for pid in others if (name := _process_name(pid)) is not None]
    unknown = len(others) - len(named)
    if len(others) == len(pids) and unknown:
        unknown -= 1
    return named + ["a process of another container"] * unknown


def _process_name(pid: int) -> str | None:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return None


def own_pids(root: int) -> set[int]:
    """The measured process and its children; ``root`` alone once it has ended."""
    try:
        return {root} | {one.pid for one in psutil.Process(root).children(recursive=True)}
    except psutil.Error:
        return {root}


def sample_host() -> dict[str, Any]:
    """CPU time since the last call, in percent of all cores, and the load average."""
    times = psutil.cpu_times_percent(interval=None)
    return {
        "cpu_busy_pct": 100.0 - times.idle - getattr(times, "iowait", 0.0),
        "cpu_steal_pct": getattr(times, "steal", None),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def watch(
    readers: list[DeviceReader],
    root: int,
    interval_s: float,
    out: TextIO,
    ended: Callable[[], bool],
) -> None:
    """Sample at once, then every ``interval_s`` until ``ended``, and once more."""
    psutil.cpu_times_percent(interval=None)
    pids, looked_at = own_pids(root), time.monotonic()
    last = False
    while True:
        if time.monotonic() - looked_at > _OWN_EVERY_S:
            pids, looked_at = own_pids(root), time.monotonic()
        line = {
            "unix_ns": time.time_ns(),
            "devices": {one.uuid: one.read(pids) for one in readers},
            "host": sample_host(),
        }
        out.write(json.dumps(line) + "\n")
        out.flush()
        if last:
            return
        last = ended() if interval_s <= 0 else _ended_within(interval_s, ended)


def _ended_within(interval_s: float, ended: Callable[[], bool]) -> bool:
    until = time.monotonic() + interval_s
    while (left := until - time.monotonic()) > 0:
        readable, _, _ = select.select([sys.stdin], [], [], left)
        if readable and ended():
            return True
    return False


def _stdin_closed() -> bool:
    return sys.stdin.read(1) == ""


def main(arguments: list[str] | None = None) -> None:
    """``--out FILE --pid PID --interval-ms N [UUID[=PARENT] …]``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--interval-ms", type=float, required=True)
    parser.add_argument("devices", nargs="*")
    options = parser.parse_args(arguments)
    readers: list[DeviceReader] = []
    if options.devices:
        import pynvml

        pynvml.nvmlInit()
        for one in options.devices:
            uuid, _, parent = one.partition("=")
            readers.append(DeviceReader(pynvml, uuid, parent))
    with options.out.open("w", encoding="utf-8") as out:
        watch(readers, options.pid, options.interval_ms / 1e3, out, _stdin_closed)


if __name__ == "__main__":
    main()
