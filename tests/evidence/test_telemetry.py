from __future__ import annotations

import msgspec

from pytest_tokbudget.evidence.nvml import Device, DriverView
from pytest_tokbudget.evidence.telemetry import Telemetry
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.telemetry import MachineWatch


class NoDriver:
    def read(self) -> Unavailable:
        return Unavailable("NVML did not start: no driver", "install a driver")


class DriverOfAnotherMachine:
    def read(self) -> DriverView:
        return DriverView("1", [Device(index=0, uuid="GPU-absent", product="NVIDIA H200")])


def test_without_nvml_the_host_is_watched_and_the_reason_stands() -> None:
    telemetry = Telemetry(NoDriver(), interval_ms=10)
    assert telemetry.start() is None
    watch = telemetry.stop()
    assert isinstance(watch, MachineWatch), watch
    assert watch.samples >= 2
    assert watch.devices == []
    assert "no driver" in watch.unavailable["nvml"]
    assert watch.cpu_busy_pct is not None
    assert msgspec.json.decode(msgspec.json.encode(watch), type=MachineWatch) == watch


def test_a_device_that_vanished_is_unavailable_with_the_reason() -> None:
    telemetry = Telemetry(DriverOfAnotherMachine())
    assert telemetry.start() is None
    watch = telemetry.stop()
    assert isinstance(watch, Unavailable)
    assert "NVML" in watch.reason


def test_stopping_what_was_not_started_is_unavailable() -> None:
    assert isinstance(Telemetry(NoDriver()).stop(), Unavailable)


def test_only_samples_of_the_pass_count() -> None:
    telemetry = Telemetry(NoDriver(), interval_ms=20)
    assert telemetry.start() is None
    found = telemetry.stop((0, 1))
    assert isinstance(found, Unavailable)
    assert "20 ms" in found.reason
    again = Telemetry(NoDriver(), interval_ms=20)
    assert again.start() is None
    assert isinstance(again.stop((0, 2**63)), MachineWatch)
