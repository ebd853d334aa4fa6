"""JUnit properties carry what is known, as text."""

from __future__ import annotations

from collections.abc import Callable

from pytest_tokbudget.records.result import TestResult
from pytest_tokbudget.reporting.junit import properties


def test_every_known_figure_is_a_property(result_of: Callable[..., TestResult]) -> None:
    found = dict(properties(result_of("REGRESSED", reason="First.\nSecond.", floor_tok_s=14000.0)))

    assert found == {
        "tokbudget_outcome": "REGRESSED",
        "tokbudget_token_kind": "real",
        "tokbudget_reason": "First. Second.",
        "tokbudget_tok_s": "13740",
        "tokbudget_baseline_tok_s": "14480",
        "tokbudget_change_pct": "-5.11",
        "tokbudget_mde_pct": "1.92",
        "tokbudget_tolerance_pct": "3",
        "tokbudget_floor_tok_s": "14000",
        "tokbudget_steps": "200",
        "tokbudget_warmup_steps": "24",
        "tokbudget_ci_low_pct": "-6.4",
        "tokbudget_ci_high_pct": "-3.8",
        "tokbudget_step_ms_p50": "15.8123",
        "tokbudget_step_ms_p95": "16.24",
        "tokbudget_step_ms_max": "31.02",
        "tokbudget_sessions": "3",
    }


def test_the_unknown_is_left_out() -> None:
    result = TestResult(nodeid="a.py::b", outcome="FAILED", reason="it broke")

    assert properties(result) == [
        ("tokbudget_outcome", "FAILED"),
        ("tokbudget_reason", "it broke"),
    ]
