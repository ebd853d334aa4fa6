"""Which of the driver's devices CUDA shows to this process, and in which order.

Rules of ``CUDA_VISIBLE_DEVICES`` from the CUDA C++ Programming Guide, "Environment Variables", and
NVIDIA's MIG User Guide, "Device Enumeration".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .nvml import Device


@dataclass(frozen=True)
class Visible:
    """Devices in CUDA order as far as it can be told; ``assumption`` says where it cannot."""

    devices: list[Device]
    assumption: str = ""


def visible_devices(devices: Sequence[Device], environment: Mapping[str, str]) -> Visible:
    """The devices that CUDA would enumerate; ``devices`` are the driver's, in PCI order.

    Entries are indices, UUIDs or beginnings of them (``GPU-…``, ``MIG-…``); everything after the
    first invalid one is invisible, and a device named twice hides all. Indices count in PCI order
    with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``. Otherwise CUDA puts the fastest first: among equal
    products that is PCI order too, among unlike ones only CUDA knows, and PCI order is assumed. As
    soon as a MIG slice is visible, CUDA shows the first one and nothing else.
    """
    named = environment.get("CUDA_VISIBLE_DEVICES")
    chosen = list(devices) if named is None else _named(named, devices)
    chosen = [one for device in chosen for one in (device.slices[:1] or (device,))]
    slices = [one for one in chosen if one.parent_uuid]
    return Visible(slices[:1] or chosen, _assumption(named, devices, environment))


def _named(text: str, devices: Sequence[Device]) -> list[Device]:
    chosen: list[Device] = []
    for entry in text.split(","):
        device = _match(entry.strip(), devices)
        if device is None:
            break
        if device in chosen:
            return []
        chosen.append(device)
    return chosen


def _match(entry: str, devices: Sequence[Device]) -> Device | None:
    """The one device that ``entry`` names; None where it names none, or several."""
    number = re.match(r"\+?(\d+)", entry)
    if number:
        return devices[int(number[1])] if int(number[1]) < len(devices) else None
    slices = [one for device in devices for one in device.slices]
    older = re.fullmatch(r"MIG-(GPU-[0-9a-fA-F-]+)/(\d+)/(\d+)", entry)
    if older:
        instances = (int(older[2]), int(older[3]))
        candidates = [
            one
            for one in slices
            if one.parent_uuid.startswith(older[1]) and one.instances == instances
        ]
    elif entry.startswith("MIG-"):
        candidates = [one for one in slices if one.uuid.startswith(entry)]
    elif entry.startswith("GPU-"):
        candidates = [one for one in devices if one.uuid.startswith(entry)]
    else:
        candidates = []
    return candidates[0] if len(candidates) == 1 else None


def _assumption(
    named: str | None, devices: Sequence[Device], environment: Mapping[str, str]
) -> str:
    by_index = named is not None and re.match(r"\s*\+?\d", named) is not None
    unlike = len({device.product for device in devices}) > 1
    if environment.get("CUDA_DEVICE_ORDER", "FASTEST_FIRST") == "PCI_BUS_ID" or not unlike:
        return ""
    if not by_index:
        return ""
    return (
        f"CUDA_VISIBLE_DEVICES={named} counts the fastest device first and the devices are unlike; "
        "PCI order was assumed (set CUDA_DEVICE_ORDER=PCI_BUS_ID to be sure)"
    )
