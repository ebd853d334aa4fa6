"""Which machines are alike enough for their sessions to be compared."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter

from ..records.machine import Accelerator, MachineClass, MachineRecord
from .slugs import slug

_LONGEST_SLUG = 120
_GIB = 1 << 30

ACCELERATOR_FIELDS = (
    "accelerators",
    "form_factor",
    "accelerator_memory",
    "accelerator_count",
    "mig_profile",
    "power_limit",
)
"""The fields that must be equal within a pool as well: a pool may mix hosts, not accelerators."""

_CPU_NOISE = re.compile(r"\((?:R|TM|C)\)|\b\d+-Core\b|\bProcessor\b|\bCPU\b|\bw/.*$", re.IGNORECASE)


def machine_class(machine: MachineRecord) -> MachineClass:
    """The class of ``machine``: accelerators, CPU model and usable cores, never versions or hosts.

    The slug reads like ``1x-nvidia-h200-sxm-141gb-700w-amd-epyc-9655-16c`` or ``cpu-amd-epyc-2c``;
    with a pool name it is the pool's.
    """
    fields = {
        **_accelerator_fields(machine.accelerators),
        "cpu_model": _cpu(machine),
        "usable_cores": str(machine.usable_cores),
    }
    name = slug(machine.pool) if machine.pool else _hardware_slug(machine)
    return MachineClass(slug=name, fields=fields, pool=machine.pool)


def differing_fields(a: MachineClass, b: MachineClass) -> dict[str, tuple[str, str]]:
    """Field → (value of ``a``, value of ``b``) where they differ; a missing one is "not recorded".

    Pools count as a field; two machines of one pool may still differ in hardware, and are shown.
    """
    left, right = {"pool": a.pool, **a.fields}, {"pool": b.pool, **b.fields}
    missing = "not recorded"
    pairs = {
        name: (left.get(name, missing), right.get(name, missing)) for name in {**left, **right}
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def describe_differences(found: dict[str, tuple[str, str]], *, a: str, b: str) -> str:
    """``differing_fields`` as text: ``power_limit 700 W there, 500 W here``."""
    return ", ".join(
        f"{name} {left or 'none'} {a}, {right or 'none'} {b}"
        for name, (left, right) in found.items()
    )


def _cpu(machine: MachineRecord) -> str:
    return " ".join(_CPU_NOISE.sub(" ", machine.cpu_model).split()) or "unknown"


def _memory_gb(device: Accelerator) -> int | None:
    """Memory in GiB, rounded up, which is what the product is sold as.

    Drivers keep some hundred MiB for themselves, differently by version: 81,559 MiB is "80 GB",
    143,771 MiB "141 GB".
    """
    return None if device.memory_bytes is None else math.ceil(device.memory_bytes / _GIB)


def _known(value: object, unit: str = "") -> str:
    return "unknown" if value is None else f"{value}{unit}"


def _facts(device: Accelerator) -> tuple[str, str, str, str, str]:
    """Product, form factor, memory, MIG profile and power limit, as shown and compared."""
    watts = None if device.power_limit_w is None else round(device.power_limit_w)
    return (
        " ".join(device.product.split()),
        _known(device.form_factor),
        _known(_memory_gb(device), " GB"),
        "none" if device.mig_profile == "" else _known(device.mig_profile),
        _known(watts, " W"),
    )


def _accelerator_fields(devices: list[Accelerator]) -> dict[str, str]:
    """Each field's values joined by " + " where the devices are not all alike, in a fixed order."""
    if not devices:
        return {"accelerators": "none", "accelerator_count": "0"}
    kinds = Counter(_facts(device) for device in devices)
    ordered = sorted(kinds)
    product, form, memory, mig, power = (
        " + ".join(dict.fromkeys(column)) if len(set(column)) == 1 else " + ".join(column)
        for column in zip(*ordered)
    )
    return {
        "accelerators": product,
        "form_factor": form,
        "accelerator_memory": memory,
        "accelerator_count": " + ".join(str(kinds[kind]) for kind in ordered),
        "mig_profile": mig,
        "power_limit": power,
    }


def _hardware_slug(machine: MachineRecord) -> str:
    kinds = Counter(_facts(device) for device in machine.accelerators)
    parts = [_kind_slug(facts, kinds[facts]) for facts in sorted(kinds)] or ["cpu"]
    whole = slug("-".join([*parts, _cpu(machine), f"{machine.usable_cores}c"]), most=10_000)
    if len(whole) <= _LONGEST_SLUG:
        return whole
    # Cutting alone would give a machine of many kinds the directory of another one.
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{digest}-{slug(whole, most=_LONGEST_SLUG - 9)}"


def _kind_slug(facts: tuple[str, str, str, str, str], count: int) -> str:
    product, form, memory, mig, power = facts
    said = product.lower().split()
    form_part = "" if form == "unknown" or form.lower() in said else form
    memory_part = memory.replace(" ", "")
    return "-".join(
        part
        for part in (
            f"{count}x",
            product,
            form_part,
            "" if memory == "unknown" or memory_part.lower() in said else memory_part,
            "" if mig in ("none", "unknown") else f"mig-{mig}",
            "" if power == "unknown" else power.replace(" ", ""),
        )
        if part
    )
