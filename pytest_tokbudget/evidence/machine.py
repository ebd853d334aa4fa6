"""The machine a session runs on."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ..records.base import Unavailable
from ..records.machine import Accelerator, MachineRecord
from . import host
from .commit import read_commit
from .nvml import Device, DriverReader, DriverView, Nvml
from .software import read_software
from .visible_devices import visible_devices

_NAMED_FORM = re.compile(r"\b(SXM|PCIE?|NVL)\d*\b", re.IGNORECASE)
_FORMS = {"SXM": "SXM", "PCI": "PCIe", "PCIE": "PCIe", "NVL": "NVL"}

# The driver leaves the form factor out of these names; their other forms are named as such.
_PLAIN_SXM = re.compile(r"(?:NVIDIA )?(?:H100 \d+GB HBM\w*|H200|B200)")


def form_factor_of(product: str) -> str | None:
    """``"SXM"``, ``"PCIe"`` or ``"NVL"`` where the product name tells it, else None."""
    named = _NAMED_FORM.search(product)
    if named:
        return _FORMS[named[1].upper()]
    return "SXM" if _PLAIN_SXM.fullmatch(product.strip()) else None


def read_machine(
    pool: str = "",
    *,
    rootdir: Path,
    exclude: Sequence[Path] = (),
    modules: Mapping[str, ModuleType] | None = None,
    reader: DriverReader | None = None,
    environment: Mapping[str, str] | None = None,
) -> MachineRecord:
    """Describe this machine as the calling process may use it; makes no CUDA context.

    ``pool`` is the team's name for its pool of equal machines. ``rootdir`` is where the commit is
    read, without changes under ``exclude``; ``modules`` are what the measuring process had imported
    by then. Accelerators are those ``CUDA_VISIBLE_DEVICES`` leaves,
    in CUDA order as far as it can be told (``visible_devices``), with NVML's index. What cannot be
    known stands under ``unavailable``: ``accelerators`` (no driver), ``accelerator_order``,
    ``cpu_model``, ``commit``. Never raises.
    """
    unavailable: dict[str, str] = {}
    environment = os.environ if environment is None else environment
    view = (reader or Nvml()).read()
    accelerators: list[Accelerator] = []
    if isinstance(view, Unavailable):
        unavailable["accelerators"] = str(view)
    else:
        visible = visible_devices(view.devices, environment)
        accelerators = [_accelerator(device) for device in visible.devices]
        if visible.assumption:
            unavailable["accelerator_order"] = visible.assumption
        if not accelerators:
            unavailable["accelerators"] = _none_visible(view, environment)
    model = host.cpu_model()
    if model is None:
        unavailable["cpu_model"] = "neither /proc/cpuinfo nor lscpu names the CPU"
    commit = read_commit(rootdir, exclude=exclude, modules=modules)
    if commit.sha is None:
        unavailable["commit"] = commit.reason
    return MachineRecord(
        cpu_model=model or "unknown",
        usable_cores=host.usable_cores(),
        memory_bytes=host.memory_bytes(),
        host_hash=host.host_hash(),
        accelerators=accelerators,
        software=read_software(None if isinstance(view, Unavailable) else view.driver),
        commit=commit,
        pool=pool,
        unavailable=unavailable,
    )


def _accelerator(device: Device) -> Accelerator:
    return Accelerator(
        index=device.index,
        uuid=device.uuid,
        product=device.product,
        form_factor=form_factor_of(device.product),
        memory_bytes=device.memory_bytes,
        mig_profile=device.mig_profile,
        power_limit_w=device.power_limit_w,
    )


def _none_visible(view: DriverView, environment: Mapping[str, str]) -> str:
    if not view.devices:
        return "the driver shows no GPU"
    named = environment.get("CUDA_VISIBLE_DEVICES")
    return f"CUDA_VISIBLE_DEVICES={named!r} hides all {len(view.devices)} GPUs of the driver"
