from __future__ import annotations

from typing import Any

import pytest

from pytest_tokbudget.evidence.nvml import Device
from pytest_tokbudget.evidence.telemetry_summary import spelled, summarize

GPU = Device(index=3, uuid="GPU-1", product="NVIDIA H200")


def sample(second: float, **changes: Any) -> dict[str, Any]:
    device = {
        "sm_clock_mhz": 1_980,
        "memory_clock_mhz": 3_201,
        "power_w": 500.0,
        "temperature_c": 60,
        "memory_used_bytes": 100,
        "utilization_pct": 90,
        "memory_utilization_pct": 40,
        "reasons": 0,
        "foreign": [],
        "errors": {},
    }
    host = {"cpu_busy_pct": 50.0, "cpu_steal_pct": 1.0, "load": 2.0}
    return {
        "unix_ns": int(second * 1e9),
        "devices": {"GPU-1": device | changes},
        "host": host,
    }


def test_extremes_and_volatility() -> None:
    watch = summarize(
        [sample(0, sm_clock_mhz=1_900), sample(1), sample(2, memory_used_bytes=300)], [GPU], {}
    )
    (device,) = watch.devices
    assert (watch.seconds, watch.samples, device.index) == (2.0, 3, 3)
    assert device.sm_clock_mhz is not None
    assert (device.sm_clock_mhz.min, device.sm_clock_mhz.max) == (1_900, 1_980)
    assert device.memory_used_bytes is not None
    assert device.memory_used_bytes.deviation == pytest.approx(94.28, abs=0.01)


def test_reasons_are_spelled_out_with_their_share() -> None:
    watch = summarize([sample(0, reasons=0x44), sample(1, reasons=0x4)], [GPU], {})
    (device,) = watch.devices
    assert device.reasons == {"software power cap": 1.0, "hardware thermal slowdown": 0.5}
    assert device.throttled_share == 0.5
    assert spelled(0x200) == ["reason 0x200"]


def test_what_the_driver_refuses_is_unknown_and_not_zero() -> None:
    refused = {"utilization_pct": "Not Supported"}
    watch = summarize(
        [sample(0, utilization_pct=None, errors=refused, reasons=None, foreign=None)], [GPU], {}
    )
    (device,) = watch.devices
    assert device.utilization_pct is None
    assert device.unavailable == refused
    assert (device.foreign_processes, device.throttled_share) == (None, None)
    assert watch.cpu_busy_pct is None


def test_foreign_processes_are_counted_at_their_most() -> None:
    watch = summarize([sample(0), sample(1, foreign=["a (1)", "b (2)"])], [GPU], {})
    assert watch.devices[0].foreign_processes == 2
    assert watch.devices[0].foreign == ["a (1)", "b (2)"]
