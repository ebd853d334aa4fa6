from __future__ import annotations

import msgspec
import pytest

from pytest_tokbudget.analysis.cause_table import cause_table
from pytest_tokbudget.analysis.host_factor import HostFit
from pytest_tokbudget.analysis.replay_plan import HostModel
from pytest_tokbudget.analysis.whatif import what_if
from pytest_tokbudget.records.causes import CauseTable
from tests.simulated_loops import KERNELS, STEPS, program_of, run

KERNEL_NS = 6_000


def build(
    loop: str, fault: str, *, solved: bool = False, timing_ms: float | None = None
) -> CauseTable:
    traced = run(loop, fault, KERNEL_NS)
    program = program_of(traced)
    step_ms = traced.step_ns / 1e6 if timing_ms is None else timing_ms
    what = what_if(program, HostModel(), step_ms)
    return cause_table(
        traced.timeline, program, step_ms, HostFit(HostModel(), 1.0, solved, "test"), what
    )


def test_the_rows_of_the_counting_thread_sum_to_the_replayed_step() -> None:
    table = build("one_thread", "python")
    assert table.replayed_step_ms == pytest.approx(sum(one.what_if_ms or 0 for one in table.causes))
    assert table.unexplained_ms == pytest.approx(0.0, abs=1e-3)
    assert table.approximate == ""


def test_direct_times_are_those_of_the_trace() -> None:
    causes = {one.cause: one for one in build("one_thread", "cache").causes}
    assert causes["allocator"].direct_ms >= 0.6
    assert causes["launch calls"].direct_ms == pytest.approx(KERNELS * 0.004)
    assert causes["allocator"].devices == ["cuda:0"]


def test_named_python_has_its_own_row() -> None:
    (row,) = [one for one in build("one_thread", "python").causes if one.function == "collate"]
    assert row.direct_ms == pytest.approx(3.0)
    assert row.alone_ms == pytest.approx(3.0, abs=0.01)
    assert row.samples == STEPS


def test_devices_are_busy_for_their_kernels() -> None:
    (device,) = build("one_thread", "copy").devices
    assert device.busy_ms == pytest.approx(KERNELS * KERNEL_NS / 1e6)
    assert device.exposed_copy_ms == pytest.approx(2.0)


def test_every_thread_has_its_rows() -> None:
    table = build("pipeline", "sleep")
    slept = {one.thread: one.direct_ms for one in table.causes if one.cause == "sleep"}
    assert slept == {"python 0": 0.0, "python 1": pytest.approx(3.0)}


def test_what_was_solved_for_is_no_evidence() -> None:
    assert build("one_thread", "none", solved=True).unexplained_ms is None


def test_a_replay_that_misses_says_by_how_much() -> None:
    table = build("one_thread", "none", timing_ms=1.0)
    assert "off the timing pass" in table.approximate
    assert table.unexplained_ms == pytest.approx(1.0 - (table.replayed_step_ms or 0))


def test_a_table_survives_storing() -> None:
    table = build("pipeline", "python")
    assert msgspec.json.decode(msgspec.json.encode(table), type=CauseTable) == table
