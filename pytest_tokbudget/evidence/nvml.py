"""Accelerators as the NVIDIA driver describes them, without a CUDA context."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..records.base import Unavailable


@dataclass(frozen=True)
class Device:
    """One GPU, or one MIG slice of one, as the driver shows it.

    ``index`` is NVML's, of the GPU. ``slices`` are the MIG slices of a GPU in MIG mode. Of a slice,
    ``parent_uuid`` and ``instances`` (GPU instance, compute instance) name it in the older way.
    """

    index: int
    uuid: str
    product: str
    pci_bus_id: str = ""
    memory_bytes: int | None = None
    power_limit_w: float | None = None
    mig_profile: str | None = None
    parent_uuid: str = ""
    instances: tuple[int, int] | None = None
    slices: tuple[Device, ...] = ()


@dataclass(frozen=True)
class DriverView:
    """What the driver shows to this process; devices are in NVML order, which is PCI order."""

    driver: str | None
    devices: list[Device] = field(default_factory=list)


class DriverReader(Protocol):
    """Reads the accelerators of this machine."""

    def read(self) -> DriverView | Unavailable:
        """Return what the driver shows, or why there is nothing to see."""
        ...


class Nvml:
    """Reads through NVML (``nvidia-ml-py``); it makes no CUDA context and changes nothing."""

    def read(self) -> DriverView | Unavailable:
        """Return every GPU that the driver shows; ``Unavailable`` without library or driver."""
        try:
            import pynvml as nvml
        except ImportError as error:
            return Unavailable(f"pynvml cannot be imported: {error}", "pip install nvidia-ml-py")
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            return Unavailable(f"NVML did not start: {error}")
        try:
            count = nvml.nvmlDeviceGetCount()
            driver = _asked(nvml, nvml.nvmlSystemGetDriverVersion)
            return DriverView(
                driver=None if driver is None else _text(driver),
                devices=[_device(nvml, index) for index in range(count)],
            )
        except nvml.NVMLError as error:
            return Unavailable(f"NVML could not describe the GPUs: {error}")
        finally:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _asked(nvml: Any, function: Callable[..., Any], *arguments: Any) -> Any | None:
    """The driver's answer, None where it does not know (NVML raises "not supported")."""
    try:
        return function(*arguments)
    except (nvml.NVMLError, nvml.NVMLLibraryMismatchError):
        return None


def _device(nvml: Any, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    milliwatts = _asked(nvml, nvml.nvmlDeviceGetPowerManagementLimit, handle)
    pci = _asked(nvml, nvml.nvmlDeviceGetPciInfo, handle)
    mode = _asked(nvml, nvml.nvmlDeviceGetMigMode, handle)
    gpu = Device(
        index=index,
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        product=_text(nvml.nvmlDeviceGetName(handle)),
        pci_bus_id="" if pci is None else _text(pci.busId),
        memory_bytes=_memory(nvml, handle),
        power_limit_w=None if milliwatts is None else milliwatts / 1000,
        mig_profile="",
    )
    if mode is None or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return gpu
    return replace(gpu, slices=tuple(_slices(nvml, handle, gpu)))


def _memory(nvml: Any, handle: Any) -> int | None:
    memory = _asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    return None if memory is None else int(memory.total)


def _slices(nvml: Any, handle: Any, gpu: Device) -> list[Device]:
    found = []
    for number in range(_asked(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        one = _asked(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        if one is None:
            continue
        name = _text(_asked(nvml, nvml.nvmlDeviceGetName, one) or "")
        found.append(
            replace(
                gpu,
                uuid=_text(nvml.nvmlDeviceGetUUID(one)),
                memory_bytes=_memory(nvml, one),
                mig_profile=mig_profile_of(name),
                parent_uuid=gpu.uuid,
                instances=_instances(nvml, one),
            )
        )
    return found


def _instances(nvml: Any, handle: Any) -> tuple[int, int] | None:
    gpu_instance = _asked(nvml, nvml.nvmlDeviceGetGpuInstanceId, handle)
    compute_instance = _asked(nvml, nvml.nvmlDeviceGetComputeInstanceId, handle)
    if gpu_instance is None or compute_instance is None:
        return None
    return int(gpu_instance), int(compute_instance)


def mig_profile_of(name: str) -> str | None:
    """The profile in a slice's name: ``"NVIDIA H200 MIG 1g.18gb"`` → ``"1g.18gb"``, else None."""
    _, found, profile = name.partition(" MIG ")
    return profile.strip() if found and profile.strip() else None
