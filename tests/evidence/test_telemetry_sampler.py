from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tokbudget.evidence.telemetry_sampler import (
    DeviceReader,
    foreign_processes,
    own_pids,
    watch,
)


class FakeNvml:
    """A driver with one GPU and one slice of it; the slice has no clocks of its own."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def __init__(self, pids: tuple[int, ...] = ()) -> None:
        self.pids = pids

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return self._of_whole(handle, 512_500)

    def nvmlDeviceGetClockInfo(self, handle: str, which: int) -> int:  # noqa: N802
        return self._of_whole(handle, 1_980 if which == self.NVML_CLOCK_SM else 3_201)

    def nvmlDeviceGetTemperature(self, handle: str, which: int) -> int:  # noqa: N802
        return self._of_whole(handle, 61)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return self._of_whole(handle, 0x4)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(used=7 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        if handle.startswith("MIG"):
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=99, memory=41)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self.pids]

    def _of_whole(self, handle: str, value: int) -> int:
        if handle.startswith("MIG"):
            raise self.NVMLError("Not Supported")
        return value


def test_a_device_is_read_with_its_units() -> None:
    sample = DeviceReader(FakeNvml((os.getpid(),)), "GPU-1", "").read({os.getpid()})
    assert sample == {
        "sm_clock_mhz": 1_980,
        "memory_clock_mhz": 3_201,
        "power_w": 512.5,
        "temperature_c": 61,
        "memory_used_bytes": 7 << 30,
        "utilization_pct": 99,
        "memory_utilization_pct": 41,
        "reasons": 0x4,
        "foreign": [],
        "errors": {},
    }


def test_a_slice_has_the_clocks_of_its_gpu_and_says_what_it_lacks() -> None:
    sample = DeviceReader(FakeNvml(), "MIG-1", "GPU-1").read(set())
    assert sample["sm_clock_mhz"] == 1_980
    assert sample["power_w"] == 512.5
    assert sample["utilization_pct"] is None
    assert sample["errors"] == {"utilization_pct": "Not Supported"}


def processes(*pids: int) -> list[Any]:
    return [SimpleNamespace(pid=pid) for pid in pids]


NOWHERE = 2**31 - 2
"""A pid that cannot exist here."""


def test_foreign_processes_are_those_that_are_not_ours() -> None:
    me = os.getpid()
    assert foreign_processes(processes(me), {me}) == []
    (other,) = foreign_processes(processes(me, os.getppid()), {me})
    assert f"({os.getppid()})" in other
    assert foreign_processes(processes(me, NOWHERE), {me}) == ["a process of another container"]


def test_with_pids_of_the_hosts_numbering_one_stranger_is_ourselves() -> None:
    assert foreign_processes(processes(NOWHERE), {os.getpid()}) == []
    assert len(foreign_processes(processes(NOWHERE, NOWHERE - 1), {os.getpid()})) == 1


def test_children_are_ours() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in own_pids(os.getpid())
        child.communicate(b"\n")
    assert own_pids(NOWHERE) == {NOWHERE}


def test_it_samples_at_once_and_once_more_at_the_end() -> None:
    out = io.StringIO()
    rounds = iter([False, False, True])
    watch([DeviceReader(FakeNvml(), "GPU-1", "")], os.getpid(), 0.0, out, lambda: next(rounds))
    lines = [json.loads(one) for one in out.getvalue().splitlines()]
    assert len(lines) == 4
    assert lines[0]["devices"]["GPU-1"]["temperature_c"] == 61
    assert lines[0]["host"]["load"] >= 0


@pytest.mark.parametrize("heavy", ["torch", "numpy", "scipy", "pytest"])
def test_the_sampler_imports_nothing_heavy(heavy: str) -> None:
    code = (
        "import sys, pytest_tokbudget.evidence.telemetry_sampler\n"
        f"sys.exit({heavy!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
