"""The reader of NVML against a driver written by hand: calls, answers and errors as in NVML."""

# ruff: noqa: N802 - the names are NVML's
from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from pytest_tokbudget.evidence.nvml import DriverView, Nvml
from pytest_tokbudget.records.base import Unavailable


class FakePynvml:
    """The part of ``pynvml`` that is read. Handles are dicts; a missing key is "not supported"."""

    class NVMLError(Exception):
        pass

    class NVMLLibraryMismatchError(Exception):
        pass

    NVML_DEVICE_MIG_ENABLE = 1

    def __init__(self, gpus: list[dict[str, Any]], *, starts: bool = True) -> None:
        self._gpus = gpus
        self._starts = starts
        self.open = 0

    def nvmlInit(self) -> None:
        if not self._starts:
            raise self.NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self._gpus)

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"570.1"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self._gpus[index]

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: dict[str, Any], number: int) -> Any:
        found = self._get(handle, "slices")[number]
        return found if found is not None else self._unsupported()

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: dict[str, Any]) -> int:
        return len(self._get(handle, "slices"))

    def nvmlDeviceGetMemoryInfo(self, handle: dict[str, Any]) -> Any:
        return SimpleNamespace(total=self._get(handle, "memory"))

    def nvmlDeviceGetPciInfo(self, handle: dict[str, Any]) -> Any:
        return SimpleNamespace(busId=self._get(handle, "bus"))

    def __getattr__(self, name: str) -> Any:
        keys = {
            "nvmlDeviceGetUUID": "uuid",
            "nvmlDeviceGetName": "name",
            "nvmlDeviceGetPowerManagementLimit": "milliwatts",
            "nvmlDeviceGetMigMode": "mig",
            "nvmlDeviceGetGpuInstanceId": "gi",
            "nvmlDeviceGetComputeInstanceId": "ci",
        }
        if name not in keys:
            raise AttributeError(name)
        return lambda handle: self._get(handle, keys[name])

    def _get(self, handle: dict[str, Any], key: str) -> Any:
        return handle[key] if key in handle else self._unsupported()

    def _unsupported(self) -> NoReturn:
        raise self.NVMLError("Not Supported")


GPU = {
    "uuid": b"GPU-1",
    "name": "NVIDIA H200",
    "milliwatts": 700_000,
    "memory": 150_754_820_096,
    "bus": b"00000000:0F:00.0",
    "mig": (0, 0),
}
SLICE = {"uuid": "MIG-1", "name": "NVIDIA H200 MIG 1g.18gb", "memory": 1 << 34, "gi": 7, "ci": 0}


def _read(monkeypatch: pytest.MonkeyPatch, fake: FakePynvml) -> DriverView | Unavailable:
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    found = Nvml().read()
    assert fake.open == 0
    return found


def _view(monkeypatch: pytest.MonkeyPatch, *gpus: dict[str, Any]) -> DriverView:
    found = _read(monkeypatch, FakePynvml(list(gpus)))
    assert isinstance(found, DriverView)
    return found


def test_a_gpu_is_read_with_its_units(monkeypatch: pytest.MonkeyPatch) -> None:
    view = _view(monkeypatch, GPU)

    assert view.driver == "570.1"
    (device,) = view.devices
    assert (device.index, device.uuid, device.product) == (0, "GPU-1", "NVIDIA H200")
    assert (device.memory_bytes, device.power_limit_w) == (150_754_820_096, 700.0)
    assert (device.mig_profile, device.slices) == ("", ())
    assert device.pci_bus_id == "00000000:0F:00.0"


def test_what_the_driver_does_not_know_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    (device,) = _view(monkeypatch, {"uuid": "GPU-1", "name": "NVIDIA Thing"}).devices

    assert (device.memory_bytes, device.power_limit_w, device.pci_bus_id) == (None, None, "")


def test_slices_are_read_where_mig_is_on_and_holes_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = {**GPU, "mig": (1, 1), "slices": [None, SLICE, {**SLICE, "uuid": "MIG-2", "gi": 8}]}
    off = {**GPU, "slices": [SLICE]}

    first, second = _view(monkeypatch, on, off).devices

    assert [one.uuid for one in first.slices] == ["MIG-1", "MIG-2"]
    one = first.slices[0]
    assert (one.parent_uuid, one.instances) == ("GPU-1", (7, 0))
    assert (one.mig_profile, one.memory_bytes, one.power_limit_w) == ("1g.18gb", 1 << 34, 700.0)
    assert (second.index, second.slices) == (1, ())


@pytest.mark.parametrize(
    ("fake", "reason"),
    [
        (FakePynvml([], starts=False), "NVML did not start: Driver Not Loaded"),
        (FakePynvml([{"name": "lost"}]), "NVML could not describe the GPUs: Not Supported"),
    ],
)
def test_a_driver_that_fails_gives_its_reason(
    monkeypatch: pytest.MonkeyPatch, fake: FakePynvml, reason: str
) -> None:
    assert _read(monkeypatch, fake) == Unavailable(reason)


def test_without_the_module_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)

    found = Nvml().read()

    assert isinstance(found, Unavailable)
    assert found.remedy == "pip install nvidia-ml-py"
