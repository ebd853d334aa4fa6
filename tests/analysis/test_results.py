"""Results are derived from raw marks, and every unknown has its reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pytest_tokbudget.analysis import results
from pytest_tokbudget.analysis.lost_evidence import without_evidence
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.records.machine import Accelerator, Commit, MachineRecord, Software
from pytest_tokbudget.records.marks import MarkSeries, QueueSeries
from pytest_tokbudget.records.result import TestResult
from pytest_tokbudget.records.run import Pass, RunRecord, WarmUp
from pytest_tokbudget.records.verdict import Outcome, SessionFigure, Verdict
from pytest_tokbudget.records.workload import Workload

MS = 1_000_000

MACHINE = MachineRecord(
    cpu_model="AMD EPYC 9654",
    usable_cores=16,
    memory_bytes=1 << 37,
    host_hash="4f2a",
    accelerators=[Accelerator(index=0, uuid="GPU-1f", product="NVIDIA H200")],
    software=Software(python="3.11.9", tokbudget="0.1.0"),
    commit=Commit(sha="a1b2c3d4e5f6"),
)


def run_of(
    *step_ms: float, tokens: int = 1000, queues: list[QueueSeries] | None = None, **changes: Any
) -> RunRecord:
    """One session whose steps took ``step_ms``, after two warm-up steps of 50 ms."""
    ends = [50 * MS, 100 * MS]
    for one in step_ms:
        ends.append(ends[-1] + round(one * MS))
    total = tokens * len(step_ms)
    seconds = (ends[-1] - ends[1]) / 1e9
    run = RunRecord(
        workload=Workload(
            path="tests/test_x.py",
            qualname="test_x",
            nodeid="tests/test_x.py::test_x",
            declaration={"token_kind": "real", "token_scope": "global"},
        ),
        budget=Budget(steps=len(step_ms)),
        machine=MACHINE,
        unix_offset_ns=0,
        pid=1,
        devices=["cuda:0"],
        warmup=WarmUp(steps=2, seconds=0.1, steady=True),
        passes=[
            Pass(
                kind="timing",
                start_ns=ends[1],
                end_ns=ends[-1],
                steps=len(step_ms),
                tokens={"real": total},
                tok_s=total / seconds,
            )
        ],
        marks=[
            MarkSeries(
                worker="main",
                counts=True,
                times_ns=ends,
                tokens={"real": [tokens] * len(ends)},
                window=(1, len(ends) - 1),
                window_ns=(ends[1], ends[-1]),
            )
        ],
        queues=queues or [],
    )
    return msgspec.structs.replace(run, **changes)


def verdict_of(*set_aside: str, outcome: Outcome = Outcome.PASS, **figures: Any) -> Verdict:
    return Verdict(
        outcome=outcome,
        sentences=["First.", "Second."],
        sessions=[
            SessionFigure(tok_s=1.0, steps=1, warmup_steps=0, set_aside=why) for why in set_aside
        ],
        **figures,
    )


def test_figures_come_from_the_counted_sessions() -> None:
    fast, slow = run_of(10, 10, 10, 30), run_of(100, 100, 100, 100)

    result = results.test_result(verdict_of("", "a slow host"), [fast, slow])

    assert result.nodeid == "tests/test_x.py::test_x"
    assert result.reason == "First.\nSecond."
    assert result.tok_s == pytest.approx(4000 / 0.060)
    assert result.step_ms is not None
    assert (result.step_ms.p50, result.step_ms.max) == (10, 30)
    assert (result.steps, result.warmup_steps) == (4, 2)
    assert (result.token_kind, result.token_scope) == ("real", "global")
    assert result.sessions is not None
    assert [one["set_aside"] for one in result.sessions] == [None, "a slow host"]
    assert result.sessions[1]["step_ms"] == {"p50": 100, "p95": 100, "max": 100}


def test_step_times_of_all_counted_sessions_are_pooled() -> None:
    result = results.test_result(verdict_of("", ""), [run_of(10, 10, 10), run_of(20, 20, 20, 20)])

    assert result.step_ms is not None
    assert result.step_ms.p50 == 20
    assert result.steps == 3


def test_the_judges_figures_are_passed_on() -> None:
    verdict = verdict_of(
        "", tok_s=950.0, baseline_tok_s=1000.0, change_pct=-5.0, ci_pct=(-6.0, -4.0), mde_pct=1.5
    )

    result = results.test_result(verdict, [run_of(10)])

    assert (result.tok_s, result.baseline_tok_s) == (950.0, 1000.0)
    assert (result.change_pct, result.ci_pct, result.mde_pct) == (-5.0, (-6.0, -4.0), 1.5)


def test_a_device_is_named_with_its_uuid() -> None:
    result = results.test_result(verdict_of(""), [run_of(10, devices=["cuda:0", "cuda:3", "sim"])])

    assert result.devices is not None
    assert [(one.uuid, one.name) for one in result.devices] == [
        ("GPU-1f", "cuda:0 NVIDIA H200"),
        (None, "cuda:3"),
        (None, "sim"),
    ]
    assert all(one.busy_ms_per_step is None for one in result.devices)


def unexplained(result: TestResult) -> set[str]:
    return {
        name
        for name in result.__struct_fields__
        if getattr(result, name) is None and not result.unavailable.get(name)
    }


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("tolerance_pct", [None, 3.0])
def test_every_null_of_a_verdict_has_its_reason(
    outcome: Outcome, tolerance_pct: float | None
) -> None:
    verdict = verdict_of("", outcome=outcome, tolerance_pct=tolerance_pct)

    result = results.test_result(verdict, [run_of(10, devices=[], marks=[])])

    assert not unexplained(result)
    assert "no evidence pass" in result.unavailable["ledger"]


def test_reasons_of_the_session_are_kept() -> None:
    run = run_of(10, unavailable={"threads": "no /proc here", "steal": "no /proc here"})

    result = results.test_result(verdict_of(""), [run])

    assert result.unavailable["threads"] == "no /proc here"
    assert result.unavailable["steal"] == "no /proc here"


def test_a_known_field_has_no_reason() -> None:
    result = results.test_result(verdict_of("", tolerance_pct=3.0), [run_of(10)])

    assert not {"tok_s", "tolerance_pct", "step_ms", "sessions"} & set(result.unavailable)


@pytest.mark.parametrize("complete", [0, 1])
def test_a_failed_test_keeps_what_it_measured(complete: int) -> None:
    broken = run_of(10, passes=[])

    result = results.failed_result("a::b", "FAILED", "it broke", [broken, *[run_of(10)] * complete])

    assert (result.nodeid, result.outcome, result.reason) == ("a::b", "FAILED", "it broke")
    assert (result.tok_s is not None) == bool(complete)
    assert len(result.sessions or []) == complete
    assert not unexplained(result)


def test_a_verdict_without_its_sessions_is_refused() -> None:
    with pytest.raises(ValueError, match="found 0"):
        results.test_result(verdict_of(), [])
    with pytest.raises(ValueError, match="expected 2, found 1"):
        results.test_result(verdict_of("", ""), [run_of(10)])


def test_a_changed_counter_is_a_finding_also_without_evidence() -> None:
    verdict = verdict_of("", changed_counters={"tokens": (1000.0, 2000.0)})

    result = results.test_result(verdict, [run_of(10)])

    assert result.findings is not None
    (found,) = result.findings
    assert (found.cause, found.count_per_step, found.ms_per_step) == ("counter: tokens", 2000, None)
    assert result.unavailable["hot_frames"] == "no evidence pass was run"


def test_an_evidence_pass_that_did_not_end_is_none_that_was_never_run() -> None:
    died = results.failed_result("a::b", "FAILED", "it died")
    explained = results.test_result(verdict_of(""), [run_of(10)])

    for result in (died, explained):
        assert without_evidence(result, "") == result
        ended_by = f"{result.nodeid}: the process exited with status 3"
        why = without_evidence(result, ended_by).unavailable
        assert (
            why["hot_frames"]
            == why["ledger"]
            == ("the evidence pass began and did not end: the process exited with status 3")
        )
        assert "no evidence pass" not in " ".join(why.values())
    assert without_evidence(died, "x").unavailable["tok_s"] == "no session was complete"


def test_a_session_after_the_verdict_is_set_aside() -> None:
    result = results.test_result(verdict_of(""), [run_of(10), run_of(100)])

    assert result.tok_s == pytest.approx(100_000)
    assert [one["set_aside"] for one in result.sessions or ()] == [
        None,
        "measured after the verdict",
    ]


def test_only_comparisons_count_for_false_alarms() -> None:
    passed = results.test_result(verdict_of("", change_pct=-0.1), [run_of(10)])
    new = results.test_result(verdict_of("", outcome=Outcome.NO_BASELINE), [run_of(10)])
    failed = results.failed_result("a::b", "FAILED", "it broke")

    judged, expected = results.expected_false_alarms([passed, passed, new, failed])

    assert judged == 2
    assert expected == pytest.approx(2 * results.FALSE_ALARM_SHARE)
