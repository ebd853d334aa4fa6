from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.growth import growth_findings
from pytest_tokbudget.analysis.host_factor import Canary
from pytest_tokbudget.analysis.step_causes import StepEvidence, explain_step
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.causes import CauseTable
from tests.simulated_loops import TRACER_NS, program_of, run
from tests.trace_builder import TraceBuilder

KERNEL_NS = 6_000


def explain(loop: str, fault: str, *, speeds: tuple[tuple[int, float], ...] = ()) -> CauseTable:
    traced, plain = run(loop, fault, KERNEL_NS, TRACER_NS), run(loop, fault, KERNEL_NS)
    tiny = program_of(run("one_thread", "none", KERNEL_NS, TRACER_NS))
    canary = Canary(tiny, run("one_thread", "none", KERNEL_NS).step_ns / 1e6)
    evidence = StepEvidence(
        timeline=traced.timeline,
        timing_step_ms=plain.step_ns / 1e6,
        queues=traced.queues,
        main_thread=0,
        canary=canary,
        lane_speeds=speeds,
    )
    table = explain_step(evidence)
    assert isinstance(table, CauseTable)
    return table


def test_a_session_is_explained_and_compared_with_another() -> None:
    now, then = explain("one_thread", "cache"), explain("one_thread", "none")
    assert now.unexplained_ms is None  # the timing pass settled the host's speed
    first = growth_findings(now, then)[0]
    assert first.cause == "allocator"
    assert first.other_method_ms_per_step == pytest.approx(first.delta_ms_per_step, rel=0.2)
    assert not first.approximate


def test_speeds_of_single_threads_reach_the_replay() -> None:
    slow, fast = (explain("starved", "none", speeds=((1, one),)) for one in (30.0, 1.0))
    assert (slow.replayed_step_ms or 0) > 2 * (fast.replayed_step_ms or 0)


def test_what_cannot_be_replayed_says_why() -> None:
    empty = explain_step(StepEvidence(TraceBuilder().timeline(0, 10), 1.0))
    assert isinstance(empty, Unavailable)
    assert "no host calls" in str(empty) or "holds none" in str(empty)
    no_steps = explain_step(StepEvidence(TraceBuilder().timeline(0, 10, steps=0), 1.0))
    assert isinstance(no_steps, Unavailable)
    assert "no step" in str(no_steps)
