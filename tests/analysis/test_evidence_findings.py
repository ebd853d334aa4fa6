"""From evidence, with that of a baseline or without, to what to look at first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_tokbudget.analysis.cpu_summary import MOST_FRAMES
from pytest_tokbudget.analysis.evidence_findings import (
    MOST,
    changed_counters,
    counter_findings,
    ledger_changes,
    ledger_difference,
    rank_findings,
)
from pytest_tokbudget.records.causes import CauseMs, CauseTable
from pytest_tokbudget.records.evidence import DeviceLedgerMs, Evidence
from pytest_tokbudget.records.result import FrameResult

Frame = tuple[str, int, float]


def host(*frames: Frame) -> Evidence:
    """Evidence of hot frames: function, line, ms a step."""
    return Evidence(
        hot_frames=[
            FrameResult(
                function=function,
                file="a.py",
                line=line,
                share=0.1,
                samples=round(100 * ms),
                threads=["MainThread"],
            )
            for function, line, ms in frames
        ],
        frames_ms=[ms for _, _, ms in frames],
    )


def traced(**counters: float) -> Evidence:
    return Evidence(
        causes=CauseTable(step_ms=10, traced_step_ms=11, devices=[], causes=[]), counters=counters
    )


def caused(step_ms: float, **direct_ms: float) -> Evidence:
    causes = [
        CauseMs(cause=name, direct_ms=ms, what_if_ms=ms / 2, alone_ms=ms / 2)
        for name, ms in direct_ms.items()
    ]
    return Evidence(
        causes=CauseTable(
            step_ms=step_ms,
            traced_step_ms=step_ms,
            devices=[],
            causes=causes,
            replayed_step_ms=step_ms,
        )
    )


def test_with_a_reference_growth_ranks() -> None:
    found = rank_findings(caused(14, allocator=4, gc=2, io=6), caused(10, allocator=1, gc=1, io=6))

    assert [one.cause for one in found] == ["allocator", "gc"]
    assert [one.delta_ms_per_step for one in found] == pytest.approx([3, 1])
    assert {one.method for one in found} == {"growth"}


def test_without_a_reference_the_replay_ranks() -> None:
    found = rank_findings(caused(14, allocator=4, gc=2, io=6), None)

    assert [one.cause for one in found] == ["io", "allocator", "gc"]
    assert {one.method for one in found} == {"what-if"}
    assert rank_findings(caused(14, io=6), host(("f", 1, 2.0))) == rank_findings(
        caused(14, io=6), None
    )


def test_host_frames_rank_by_cost_where_there_is_nothing_to_compare_with() -> None:
    found = rank_findings(host(("cold", 1, 1.0), ("hot", 2, 5.0)), None)

    assert [one.cause for one in found] == ["host: hot", "host: cold"]
    assert all(one.delta_ms_per_step is None for one in found)


def test_the_lines_of_a_function_count_together_and_the_hottest_is_named() -> None:
    now = host(("f", 10, 2.0), ("f", 12, 3.0), ("g", 1, 4.0))
    (found,) = rank_findings(now, host(("f", 9, 1.0), ("g", 1, 4.0)))

    assert (found.cause, found.line, found.samples) == ("host: f", 12, 500)
    assert found.ms_per_step == pytest.approx(5)
    assert found.baseline_ms_per_step == pytest.approx(1)
    assert found.delta_ms_per_step == pytest.approx(4)


def in_threads(found: Evidence, number: int, kind: str | None) -> Evidence:
    frames = [
        replace(one, threads=[f"t-{at}" for at in range(number)], threads_are=kind)
        for one in found.hot_frames
    ]
    return replace(found, hot_frames=frames)


def together(*parts: Evidence) -> Evidence:
    return Evidence(
        hot_frames=[frame for one in parts for frame in one.hot_frames],
        frames_ms=[ms for one in parts for ms in one.frames_ms],
    )


def test_a_sum_over_threads_says_so_and_comes_after_what_the_step_pays() -> None:
    now = together(
        in_threads(host(("others", 1, 12.0)), 12, None),
        in_threads(host(("limiting", 1, 5.0)), 5, "limiting"),
        in_threads(host(("counting", 1, 2.0)), 3, "counting"),
        host(("alone", 1, 1.0)),
    )
    then = replace(now, frames_ms=[2.0, 1.0, 1.0, 0.1])

    for reference in (then, None):
        assert [(one.cause, one.summed_threads) for one in rank_findings(now, reference)] == [
            ("host: limiting", 5),
            ("host: counting", None),
            ("host: alone", None),
            ("host: others", 12),
        ]


def test_a_frame_unseen_in_a_short_baseline_is_new() -> None:
    (found,) = rank_findings(host(("f", 1, 2.0), ("g", 1, 3.0)), host(("f", 1, 2.0)))

    assert found.cause == "host: g"
    assert found.delta_ms_per_step == pytest.approx(3)


def test_a_frame_unseen_in_a_full_baseline_may_have_cost_what_the_coldest_did() -> None:
    then = host(*((f"f{n}", 1, 2.0) for n in range(MOST_FRAMES)))
    (found,) = rank_findings(host(("g", 1, 3.0)), then)

    assert found.delta_ms_per_step == pytest.approx(1)


def test_at_most_ten_and_no_scatter() -> None:
    assert len(rank_findings(host(*((f"f{n}", 1, 2.0) for n in range(15))), None)) == MOST
    assert rank_findings(host(("f", 1, 10.04)), host(("f", 1, 10.0))) == []


def on_device(step_ms: float, dispatch_ms: float, *frames: Frame, **named: float) -> Evidence:
    """Of a trace that left Python unnamed, or named some of it, and of stacks sampled before."""
    python = [
        CauseMs(cause="python", thread="MainThread", function=name, direct_ms=ms)
        for name, ms in named.items()
    ]
    dispatch = CauseMs(cause="dispatch", thread="MainThread", direct_ms=dispatch_ms)
    causes = CauseTable(
        step_ms=step_ms, traced_step_ms=step_ms, devices=[], causes=[dispatch, *python]
    )
    return replace(host(*frames), causes=causes)


def test_the_stacks_name_what_the_trace_left_unnamed() -> None:
    now = on_device(15.5, 12.1, ("pack", 30, 6.7), ("backward", 9, 3.9))
    first, second = rank_findings(now, on_device(5.0, 5.0, ("backward", 9, 3.9)))

    assert (first.cause, first.line, first.thread) == ("python: pack", 30, "MainThread")
    assert (first.ms_per_step, first.baseline_ms_per_step) == (6.7, 0.0)
    assert first.delta_ms_per_step == pytest.approx(6.7)
    assert second.cause == "dispatch"
    assert second.delta_ms_per_step == pytest.approx(0.4)


def test_a_function_that_explains_little_of_the_growth_does_not_name_it() -> None:
    now = on_device(15.5, 12.1, ("pack", 30, 3.0), ("backward", 9, 3.0))
    (found,) = rank_findings(now, on_device(5.0, 5.5, ("backward", 9, 3.0)))

    assert found.cause == "dispatch"


def test_what_the_trace_has_named_is_not_named_again() -> None:
    now = on_device(10.5, 6.5, ("pack", 30, 4.0), pack=4.0)
    first, second = rank_findings(now, on_device(5.0, 5.5, ("backward", 9, 3.0)))

    assert (first.cause, first.delta_ms_per_step) == ("python: pack", 4.0)
    assert (second.cause, second.delta_ms_per_step) == ("dispatch", 1.0)


def test_exact_counters_that_changed() -> None:
    now, then = (
        traced(syncs_total=7, kernel_launches=100, gc_ms=9),
        traced(syncs_total=2, kernel_launches=100.4, recompilations=1),
    )

    assert changed_counters(now, then) == {"syncs_total": (2, 7), "recompilations": (1, 0)}
    assert changed_counters(now, None) == {}


def test_a_changed_counter_is_a_finding_without_milliseconds_more_before_less() -> None:
    less, more = counter_findings({"kernel_launches": (9, 8), "tokens": (64, 128)})[::-1]

    assert (less.cause, more.cause) == ("counter: kernel_launches", "counter: tokens")
    assert (more.baseline_count_per_step, more.count_per_step) == (64, 128)
    assert more.ms_per_step is more.delta_ms_per_step is None


def test_without_a_trace_on_both_sides_only_common_counters_are_compared() -> None:
    now = Evidence(counters={"recompilations": 3, "syncs_total": 7})

    assert changed_counters(now, traced(recompilations=1, memsets=4)) == {"recompilations": (1, 3)}


rows = st.dictionaries(
    st.sampled_from(["compute", "exposed copy", "idle: a", "idle: b", "idle: c"]),
    st.floats(0, 1000),
    min_size=1,
)


def ledger(rows_ms: dict[str, float], device: str = "cuda:0") -> DeviceLedgerMs:
    return DeviceLedgerMs(
        device=device, step_ms=sum(rows_ms.values()), busy_ms=0.0, rows_ms=rows_ms
    )


@given(rows, rows)
def test_a_ledger_difference_sums_to_the_slow_down(
    now_ms: dict[str, float], then_ms: dict[str, float]
) -> None:
    now, then = ledger(now_ms), ledger(then_ms)

    difference = ledger_difference(now, then)

    assert sum(difference.values()) == pytest.approx(now.step_ms - then.step_ms, abs=1e-6)
    assert set(difference) == {*now_ms, *then_ms}


def test_only_devices_with_a_ledger_on_both_sides_change() -> None:
    now = Evidence(ledgers=[ledger({"compute": 3.0}), ledger({"compute": 3.0}, "cuda:1")])
    then = Evidence(ledgers=[ledger({"compute": 2.0})])

    assert ledger_changes(now, then) == {"cuda:0": {"compute": 1.0}}
    assert ledger_changes(now, None) == {}


def test_growth_within_the_scatter_of_the_samples_is_no_finding() -> None:
    """64.1 → 65.3 ms on 87 samples says nothing; on 87,000 it does."""

    def hot(ms: float, samples: int) -> Evidence:
        frame = FrameResult(
            function="run", file="it.py", line=1, share=0.3, samples=samples, threads=["a-1"]
        )
        return Evidence(hot_frames=[frame], frames_ms=[ms])

    assert rank_findings(hot(65.3, 87), hot(64.1, 87)) == []
    assert len(rank_findings(hot(65.3, 87_000), hot(64.1, 87_000))) == 1


def test_work_that_moves_to_another_kind_of_thread_is_a_finding() -> None:
    def packing(thread: str) -> Evidence:
        frame = FrameResult(
            function="pack", file="it.py", line=1, share=0.3, samples=400, threads=[thread]
        )
        return Evidence(hot_frames=[frame], frames_ms=[6.0])

    assert rank_findings(packing("post-3"), packing("post-1")) == []
    (found,) = rank_findings(packing("target-0"), packing("post-1"))
    assert (found.cause, found.thread) == ("host: pack", "target-0")


def test_a_function_that_the_baseline_saw_without_a_caller_is_not_new_with_one() -> None:
    def linear(*callers: str | None, ms: float) -> Evidence:
        frames = [
            FrameResult(
                function="Linear.forward",
                file="torch/nn/linear.py",
                line=1,
                share=0.3,
                samples=400,
                threads=["MainThread"],
                caller=one,
            )
            for one in callers
        ]
        return Evidence(hot_frames=frames, frames_ms=[ms] * len(frames))

    both = ("block (model.py:4)", "head (model.py:9)")
    assert rank_findings(linear(*both, ms=3.0), linear(None, ms=6.0)) == []
    (grown,) = rank_findings(linear(*both, ms=5.0), linear(None, ms=6.0))
    assert grown.delta_ms_per_step == pytest.approx(4)
    # Lines of the caller move too.
    moved = ("block (model.py:5)", "head (model.py:11)")
    assert rank_findings(linear(*moved, ms=3.0), linear(*both, ms=3.0)) == []
    (new,) = rank_findings(linear(*both, ms=3.0), linear(both[0], ms=3.0))
    assert new.cause == "host: Linear.forward from head (model.py:9)"
