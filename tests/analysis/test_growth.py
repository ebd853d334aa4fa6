from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_tokbudget.analysis.growth import disagree, growth_findings, what_if_findings
from pytest_tokbudget.records.causes import CauseMs, CauseTable, DeviceMs


def cause(name: str, direct: float, **more: object) -> CauseMs:
    fields = {"thread": "MainThread", "devices": ["cuda:0"], **more}
    return CauseMs(cause=name, direct_ms=direct, **fields)  # type: ignore[arg-type]


def table(step: float, busy: float, *causes: CauseMs, spacing: float = 0.5) -> CauseTable:
    device = DeviceMs(device="cuda:0", busy_ms=busy, spacing_ms=spacing)
    return CauseTable(step_ms=step, traced_step_ms=2 * step, devices=[device], causes=list(causes))


def test_a_cause_grows_by_its_host_time_when_the_device_idled_for_it() -> None:
    then = table(10.0, 8.0, cause("allocator", 0.1), cause("dispatch", 5.0))
    now = table(13.0, 8.0, cause("allocator", 2.6), cause("dispatch", 5.2))
    first, second = growth_findings(now, then)
    assert first.cause == "allocator"
    assert first.delta_ms_per_step == pytest.approx(2.5)
    assert (first.device, first.thread, first.method) == ("cuda:0", "MainThread", "growth")
    assert second.cause == "dispatch"
    assert second.delta_ms_per_step == pytest.approx(0.2)


def test_host_time_behind_a_busy_device_is_blamed_for_no_more_than_the_idle_grew() -> None:
    then = table(10.0, 9.8)
    now = table(10.1, 9.8, cause("python", 3.0, function="collate", file="data.py", line=7))
    (finding,) = growth_findings(now, then)
    assert finding.cause == "python: collate"
    assert (finding.file, finding.line) == ("data.py", 7)
    assert finding.delta_ms_per_step == pytest.approx(0.1)


def test_kernels_that_a_rested_device_runs_faster_do_not_make_its_host_dearer() -> None:
    then = table(29.0, 28.0, cause("copies", 0.0))
    now = table(31.0, 27.6, cause("copies", 6.5))
    (finding,) = growth_findings(now, then)
    assert finding.delta_ms_per_step == pytest.approx(2.0)
    faster = table(31.0, 27.0, cause("copies", 6.5))  # beyond what a clock explains: other kernels
    (finding,) = growth_findings(faster, then)
    assert finding.delta_ms_per_step == pytest.approx(3.0)


def test_a_thread_with_time_to_spare_is_to_blame_for_its_frees_alone() -> None:
    ahead = {"thread": "target-0"}
    then = table(10.0, 6.0, cause("dispatch", 3.0), cause("dispatch", 2.0, **ahead))
    now = replace(
        table(
            13.0,
            6.0,
            cause("dispatch", 3.5),
            cause("dispatch", 5.0, **ahead),
            cause("allocator", 2.0, **ahead),
            cause("waiting for others", 4.0, **ahead),
        ),
        counting_thread="MainThread",
    )
    found = {(one.cause, one.thread): one.delta_ms_per_step for one in growth_findings(now, then)}
    assert found == pytest.approx({("allocator", "target-0"): 2.0, ("dispatch", "MainThread"): 0.5})


def test_a_slower_traced_host_is_not_the_codes_and_what_has_a_name_comes_first() -> None:
    then = replace(table(10.0, 6.0, cause("dispatch", 20.0)), launch_call_us=4.0)
    collate = cause("python", 3.0, function="collate")
    now = replace(table(13.2, 6.0, cause("dispatch", 25.5), collate), launch_call_us=5.0)
    found = {one.cause: one.delta_ms_per_step for one in growth_findings(now, then)}
    # 25.5 ms at the baseline's speed are 20.4, of which the growth of 3.2 ms leaves 0.2.
    assert found == pytest.approx({"python: collate": 3.0, "dispatch": 0.2})


def test_a_faster_step_blames_nothing() -> None:
    then = table(10.0, 8.0, cause("synchronization", 0.0))
    assert growth_findings(table(9.0, 8.0, cause("synchronization", 4.0)), then) == []


def test_kernels_and_spacing_are_findings_of_the_device() -> None:
    now = table(12.0, 9.5, spacing=0.8)
    findings = growth_findings(now, table(10.0, 8.0, spacing=0.5))
    assert [one.cause for one in findings] == ["kernels", "kernel spacing"]
    assert [one.delta_ms_per_step for one in findings] == pytest.approx([1.5, 0.3])


def held(step: float, busy: float, wait: float | None) -> CauseTable:
    device = DeviceMs(device="cuda:0", busy_ms=busy, stream_wait_ms=wait)
    return CauseTable(step_ms=step, traced_step_ms=step, devices=[device], causes=[])


@pytest.mark.parametrize(
    ("busy", "wait", "expected"),
    [
        (10.5, 2.5, {"stream dependency": 2.5}),
        (11.5, 2.5, {"stream dependency": 2.5, "kernels": 1.0}),
        (8.0, 2.5, {}),  # the same kernels, waited for: nothing got longer
        (10.5, None, {"kernels": 2.5}),
    ],
)
def test_kernel_time_that_a_stream_waits_for_is_a_dependency(
    busy: float, wait: float | None, expected: dict[str, float]
) -> None:
    findings = growth_findings(held(10.0 + busy - 8.0, busy, wait), held(10.0, 8.0, 0.0))
    assert {one.cause: one.delta_ms_per_step for one in findings} == pytest.approx(expected)


def test_a_baseline_that_knows_no_waits_between_streams_blames_none() -> None:
    (finding,) = growth_findings(held(12.5, 10.5, 2.5), held(10.0, 8.0, None))
    assert finding.cause == "kernels"


def test_a_thread_is_capped_by_the_device_it_feeds() -> None:
    def two(step: float, busy: tuple[float, float], python_ms: float) -> CauseTable:
        devices = [DeviceMs(device=f"cuda:{one}", busy_ms=ms) for one, ms in enumerate(busy)]
        rows = [cause("python", python_ms, devices=["cuda:1"])]
        return CauseTable(step_ms=step, traced_step_ms=step, devices=devices, causes=rows)

    # Both steps grew by 2 ms; the second device's kernels grew by 1.5 of them.
    findings = growth_findings(two(12.0, (5.0, 10.5), 4.0), two(10.0, (5.0, 9.0), 0.0))
    python = next(one for one in findings if one.cause == "python")
    assert python.device == "cuda:1"
    assert python.delta_ms_per_step == pytest.approx(0.5)


def test_the_two_ways_are_compared_where_both_exist() -> None:
    then = table(10.0, 8.0, cause("allocator", 0.0, what_if_ms=0.0, alone_ms=0.0))

    def finding(alone: float | None) -> tuple[float | None, bool]:
        now = table(13.0, 8.0, cause("allocator", 2.0, what_if_ms=alone, alone_ms=alone))
        (one,) = growth_findings(now, then)
        return one.other_method_ms_per_step, one.approximate

    assert finding(2.1) == (2.1, False)
    assert finding(1.0) == (1.0, True)
    assert finding(None) == (None, False)


@pytest.mark.parametrize(
    ("first", "second", "differs"),
    [(1.0, 1.15, False), (1.0, 1.3, True), (0.05, 0.15, False), (5.0, 4.2, False), (5, 3.9, True)],
)
def test_twenty_per_cent_and_a_floor(first: float, second: float, differs: bool) -> None:
    assert disagree(first, second) is differs


def test_without_a_baseline_the_replays_rows_are_ranked() -> None:
    rows = [
        cause("allocator", 2.0, what_if_ms=1.5),
        cause("dispatch", 9.0, what_if_ms=6.0),
        cause("sleep", 0.0, what_if_ms=0.0),
        cause("copies", 1.0),
    ]
    findings = what_if_findings(table(10.0, 2.0, *rows))
    assert [(one.cause, one.ms_per_step) for one in findings] == [
        ("dispatch", 6.0),
        ("allocator", 1.5),
    ]
    assert {one.method for one in findings} == {"what-if"}


def test_a_held_stream_may_leave_its_device_idle() -> None:
    # 2.5 ms of waiting: kernels took 1.5 ms more, the device idled 1.5 ms more.
    (finding,) = growth_findings(held(13.0, 9.5, 2.5), held(10.0, 8.0, 0.0))
    assert finding.cause == "stream dependency"
    assert finding.delta_ms_per_step == pytest.approx(2.5)


def test_a_blocking_call_costs_the_lead_that_it_ends_where_it_grew_at_all() -> None:
    def with_reads(step: float, direct: float, alone: float) -> CauseTable:
        return table(step, 8.0, cause("synchronization", direct, alone_ms=alone))

    then = with_reads(10.0, 0.1, 0.2)
    # The traced host was slow: its reads waited 1 ms; without them the replay is 4 ms faster.
    (finding,) = growth_findings(with_reads(16.0, 1.1, 4.2), then)
    assert finding.delta_ms_per_step == pytest.approx(4.0)
    assert growth_findings(with_reads(16.0, 0.1, 4.2), then) == []


def test_causes_together_cost_no_more_than_the_idle_grew() -> None:
    named = [cause("python", 1.5, function="pack"), cause("copies", 2.0), cause("allocator", 0.9)]
    findings = growth_findings(table(13.0, 8.0, *named), table(10.0, 8.0))
    assert [(one.cause, one.delta_ms_per_step) for one in findings] == [
        ("copies", 2.0),
        ("python: pack", 1.0),
    ]


def test_a_function_named_in_one_session_alone_was_there_before() -> None:
    then = table(10.0, 6.0, cause("dispatch", 20.0))
    blocks = cause("python", 2.5, function="make_blocks")
    now = table(12.0, 6.0, cause("dispatch", 17.6), blocks, cause("copies", 1.5))
    found = {one.cause: one.delta_ms_per_step for one in growth_findings(now, then)}
    # The thread's Python grew from 20.0 to 20.1 ms, whatever part of it has a name.
    assert found == pytest.approx({"copies": 1.5, "python: make_blocks": 0.1})


def test_kernels_that_fell_where_the_device_was_idle_cost_nothing() -> None:
    assert growth_findings(table(10.0, 8.0), table(10.0, 6.0)) == []
    (finding,) = growth_findings(table(10.5, 8.0), table(10.0, 6.0))
    assert finding.cause == "kernels"
    assert finding.delta_ms_per_step == pytest.approx(0.5)


def test_a_stream_that_waited_where_the_device_was_idle_cost_nothing() -> None:
    assert growth_findings(held(10.0, 8.0, 2.5), held(10.0, 6.0, 0.0)) == []


def test_kernel_time_within_what_a_trace_changes_is_not_taken_for_idle_time() -> None:
    then = table(30.0, 29.0, cause("synchronization", 0.0))
    now = table(30.5, 28.8, cause("synchronization", 4.0))
    (finding,) = growth_findings(now, then)
    assert finding.cause == "synchronization"
    assert finding.delta_ms_per_step == pytest.approx(0.5)
