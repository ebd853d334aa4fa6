"""Samples of the machine → what is kept of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from pytest_tokbudget.records.telemetry import DeviceTelemetry, MachineWatch, Range

from .nvml import Device

REASONS = {
    0x001: "idle",
    0x002: "application clocks setting",
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
    0x100: "display clock setting",
}
"""Clocks-event reasons of NVML (nvml.h, ``nvmlClocksEventReasons``)."""

THROTTLING = 0x008 | 0x020 | 0x040 | 0x080
"""Those that mean a machine in trouble; the software power cap is a busy card's normal state."""

_FIGURES = (
    "sm_clock_mhz",
    "memory_clock_mhz",
    "power_w",
    "temperature_c",
    "memory_used_bytes",
    "utilization_pct",
    "memory_utilization_pct",
)


def spelled(reasons: int) -> list[str]:
    """Names of the bits set; a bit this table does not know is given as a number."""
    known = [name for bit, name in REASONS.items() if reasons & bit]
    rest = reasons & ~sum(REASONS)
    return known + ([f"reason {rest:#x}"] if rest else [])


def summarize(
    samples: Sequence[dict[str, Any]], devices: Sequence[Device], unavailable: dict[str, str]
) -> MachineWatch:
    """Summarize at least one sample, as ``telemetry_sampler`` writes them."""
    hosts = [one["host"] for one in samples]
    steal = _range([one["cpu_steal_pct"] for one in hosts])
    missing = dict(unavailable)
    if steal is None:
        missing["cpu_steal_pct"] = "this system does not count stolen CPU time"
    return MachineWatch(
        seconds=(samples[-1]["unix_ns"] - samples[0]["unix_ns"]) / 1e9,
        samples=len(samples),
        devices=[
            _device(one, [sample["devices"][one.uuid] for sample in samples])
            for one in devices
            if one.uuid in samples[0]["devices"]
        ],
        # The first sample covers no time: the one before it started the count.
        cpu_busy_pct=_range([one["cpu_busy_pct"] for one in hosts[1:]]),
        cpu_steal_pct=_range([one["cpu_steal_pct"] for one in hosts[1:]]),
        load=_range([one["load"] for one in hosts]),
        unavailable=missing,
    )


def _device(device: Device, samples: list[dict[str, Any]]) -> DeviceTelemetry:
    reasons = [one["reasons"] for one in samples if one["reasons"] is not None]
    named = [name for one in reasons for name in spelled(one)]
    foreign = [one["foreign"] for one in samples if one["foreign"] is not None]
    return DeviceTelemetry(
        uuid=device.uuid,
        index=device.index,
        product=device.product,
        samples=len(samples),
        **{name: _range([one[name] for one in samples]) for name in _FIGURES},
        reasons={name: named.count(name) / len(reasons) for name in dict.fromkeys(named)},
        throttled_share=sum(bool(one & THROTTLING) for one in reasons) / len(reasons)
        if reasons
        else None,
        foreign_processes=max(map(len, foreign)) if foreign else None,
        foreign=sorted({name for one in foreign for name in one}),
        unavailable={name: text for one in samples for name, text in one["errors"].items()},
    )


def _range(values: Sequence[float | None]) -> Range | None:
    """``None`` as soon as one sample is missing: extremes of the rest would be a guess."""
    known = [float(one) for one in values if one is not None]
    if not known or len(known) < len(values):
        return None
    return Range(
        min=min(known),
        mean=statistics.fmean(known),
        max=max(known),
        deviation=statistics.pstdev(known),
    )
