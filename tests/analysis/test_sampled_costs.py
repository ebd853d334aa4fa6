"""What a function costs is told by the stacks pass where that saw it oftener than the trace."""

from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.evidence_findings import rank_findings
from pytest_tokbudget.records.causes import CauseMs, CauseTable, DeviceMs
from pytest_tokbudget.records.evidence import Evidence
from pytest_tokbudget.records.result import FrameResult

IN_MAIN = ["MainThread"]


def evidence(
    step_ms: float,
    *,
    named: tuple[float, int] | None = None,
    frames: tuple[tuple[float, int, list[str]], ...] = (),
) -> Evidence:
    """``pack`` by the trace (ms a step, samples) and by the stacks (the same, threads)."""
    causes = [CauseMs(cause="dispatch", thread="MainThread", devices=["cuda:0"], direct_ms=3.0)]
    if named is not None:
        causes.append(
            CauseMs(
                cause="python",
                thread="MainThread",
                function="pack",
                file="a.py",
                line=7,
                samples=named[1],
                devices=["cuda:0"],
                direct_ms=named[0],
            )
        )
    return Evidence(
        causes=CauseTable(
            step_ms=step_ms,
            traced_step_ms=step_ms,
            devices=[DeviceMs(device="cuda:0", busy_ms=1.0)],
            causes=causes,
        ),
        hot_frames=[
            FrameResult(
                function="pack", file="a.py", line=7, share=0.5, samples=count, threads=threads
            )
            for _, count, threads in frames
        ],
        frames_ms=[ms for ms, _, _ in frames],
    )


THEN = evidence(5.0)


@pytest.mark.parametrize(
    ("frames", "delta_ms", "samples"),
    [
        (((8.5, 555, IN_MAIN),), 8.5, 555),
        # The lines of a function, or its callers, are one function.
        (((5.0, 300, IN_MAIN), (3.0, 200, IN_MAIN)), 8.0, 500),
        (((99.0, 555, IN_MAIN),), 10.0, 555),
        (((8.5, 40, IN_MAIN),), 6.0, 44),
        (((8.5, 555, ["MainThread", "loader"]),), 6.0, 44),
        ((), 6.0, 44),
    ],
    ids=["longer", "two lines", "capped by the idle time", "fewer", "other threads too", "none"],
)
def test_the_larger_sample_tells_the_cost_of_a_function_that_the_trace_named(
    frames: tuple[tuple[float, int, list[str]], ...], delta_ms: float, samples: int
) -> None:
    first, *_ = rank_findings(evidence(15.0, named=(6.0, 44), frames=frames), THEN)
    assert (first.cause, first.samples) == ("python: pack", samples)
    assert first.delta_ms_per_step == pytest.approx(delta_ms)


def test_both_sides_of_a_comparison_are_of_one_kind() -> None:
    now = evidence(15.0, named=(8.0, 44), frames=((12.0, 555, IN_MAIN),))
    by_trace = rank_findings(now, evidence(9.0, named=(4.0, 30)))[0]
    by_stacks = rank_findings(now, evidence(9.0, named=(4.0, 30), frames=((7.0, 400, IN_MAIN),)))[0]
    assert by_trace.delta_ms_per_step == pytest.approx(8.0 - 4.0)
    assert by_stacks.delta_ms_per_step == pytest.approx(12.0 - 7.0)
