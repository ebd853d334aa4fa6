"""The conditions of a session: who looks over the thread's shoulder, and who took its core."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import psutil
import pytest

from pytest_tokbudget.evidence import conditions
from pytest_tokbudget.evidence.conditions import ConditionsReader, attached_tracers
from pytest_tokbudget.evidence.nvml import Device, DriverView
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.conditions import Conditions
from pytest_tokbudget.records.telemetry import DeviceTelemetry, MachineWatch

NOTHING = (0, 0)


class NoDriver:
    def read(self) -> Unavailable:
        return Unavailable("no driver here")


class OneGpu:
    def read(self) -> DriverView:
        return DriverView(driver="1", devices=[Device(index=0, uuid="GPU-x", product="GPU")])


def read(
    during: Callable[[], object] = lambda: None,
    workers: tuple[int, ...] = (),
    **options: Any,
) -> Conditions:
    with ConditionsReader(**{"driver": NoDriver(), "environment": {}, **options}) as reader:
        during()
        return reader.stop(NOTHING, workers)


def test_a_plain_process_has_nothing_to_report() -> None:
    found = read()
    assert found.launch_blocking is False
    assert found.watch is None
    assert found.unavailable["watch"] == "no driver here"
    assert found.seconds > 0
    assert found.usable_cores >= 1


@pytest.mark.parametrize(("value", "blocking"), [("1", True), ("0", False), ("", False)])
def test_launch_blocking_is_read_from_the_environment(value: str, blocking: bool) -> None:
    found = read(environment={"CUDA_LAUNCH_BLOCKING": value})
    assert found.launch_blocking is blocking


def in_a_thread(work: Callable[[], None]) -> None:
    """So that the tracers of this very test run are none of the thread's."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            sys.settrace(None)
            sys.setprofile(None)
            work()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            failed.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def tracer(_frame: FrameType, _event: str, _argument: object) -> None:
    return None


class Collector:
    def __call__(self, _frame: FrameType, _event: str, _argument: object) -> None:
        return None


def test_tracers_are_named_by_what_they_are() -> None:
    def work() -> None:
        before = attached_tracers()
        sys.settrace(tracer)
        sys.setprofile(Collector())
        named = attached_tracers()
        sys.settrace(None)
        sys.setprofile(None)
        assert [one for one in named if one not in before] == [
            f"{__name__}.tracer (sys.settrace)",
            f"{__name__}.Collector (sys.setprofile)",
        ]

    in_a_thread(work)


def test_a_tracer_attached_in_between_is_seen() -> None:
    def work() -> None:
        def attach() -> None:
            sys.setprofile(tracer)

        found = read(attach)
        sys.setprofile(None)
        assert f"{__name__}.tracer (sys.setprofile)" in found.tracers

    in_a_thread(work)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_a_monitoring_tool_counts_once_it_asks_for_events() -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    monitoring.use_tool_id(3, "watcher")
    try:
        assert "watcher (sys.monitoring)" not in attached_tracers()
        monitoring.set_events(3, monitoring.events.PY_START)
        assert "watcher (sys.monitoring)" in attached_tracers()
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)


def test_the_worker_that_waited_longest_for_a_core_is_reported(tmp_path: Path) -> None:
    def account(**waits_ns: int) -> None:
        for name, wait_ns in waits_ns.items():
            (tmp_path / name[1:]).mkdir(exist_ok=True)
            (tmp_path / name[1:] / "schedstat").write_text(f"5000 {wait_ns} 7\n")

    account(t1=0, t2=10**15)
    found = read(lambda: account(t1=10**12, t2=10**15 + 1, t3=10**18), (1, 2, 9), tasks=tmp_path)
    assert found.core_wait_share == pytest.approx(10**12 / (found.seconds * 1e9))
    new = read(lambda: account(t4=10**12), (4,), tasks=tmp_path)
    assert new.core_wait_share == pytest.approx(10**12 / (new.seconds * 1e9)), "born meanwhile"


def test_a_kernel_without_that_account_is_unknown_and_not_idle(tmp_path: Path) -> None:
    found = read(workers=(1,), tasks=tmp_path)
    assert found.core_wait_share is None
    assert "core_wait_share" in found.unavailable


def test_shares_of_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("user", "system", "idle", "iowait", "steal", "guest")
    rows = iter([(10, 10, 10, 10, 0, 5), (50, 20, 40, 20, 10, 45)])

    def cpu_times() -> Any:
        row = dict(zip(names, next(rows)))
        return SimpleNamespace(_fields=names, **row)

    own = iter([1.0, 21.0])
    monkeypatch.setattr(psutil, "cpu_times", cpu_times)
    monkeypatch.setattr(conditions, "_own_cpu_s", lambda: next(own))
    found = read()
    # 100 s in all: 50 busy, 30 idle, 10 waiting for disks, 10 stolen; 20 of the busy were ours.
    assert found.steal_share == pytest.approx(0.1)
    assert found.others_busy_share == pytest.approx(0.3)


class Watcher:
    """Stands in for the watching process."""

    ended: list[object]

    def __init__(self, *_: object) -> None:
        Watcher.ended = []

    def start(self) -> None:
        return None

    def stop(self, within: object = None) -> MachineWatch:
        Watcher.ended.append(within)
        device = DeviceTelemetry(
            uuid="GPU-x",
            index=0,
            product="GPU",
            samples=1,
            foreign=[f"pytest ({os.getppid()})", "python (999999999)"],
        )
        return MachineWatch(seconds=1, samples=1, devices=[device])


def test_the_process_that_started_this_one_is_told_from_strangers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conditions, "Telemetry", Watcher)
    found = read(driver=OneGpu())
    assert found.of_controller == [f"pytest ({os.getppid()})"]
    assert Watcher.ended == [NOTHING], "asked once, for the pass"


def test_a_measurement_that_breaks_off_ends_the_watching_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conditions, "Telemetry", Watcher)
    with (
        pytest.raises(RuntimeError, match="broke"),
        ConditionsReader(OneGpu(), {}),
    ):
        raise RuntimeError("broke off")
    assert Watcher.ended == [None]
