"""The terminal section: what it says, how wide it is, what colour."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

from pytest_tokbudget.records.machine import MachineRecord
from pytest_tokbudget.records.result import TestResult
from pytest_tokbudget.records.verdict import Outcome
from pytest_tokbudget.reporting.terminal import STYLES, family_line, render, summary_line

ResultOf = Callable[..., TestResult]
OUTCOMES = [*(one.value for one in Outcome), "FAILED", "SKIPPED"]
ANSI = re.compile(r"\x1b\[[0-9;]*m")

UNCOMPARED: dict[str, Any] = {
    "baseline_tok_s": None,
    "change_pct": None,
    "ci_pct": None,
    "mde_pct": None,
}


def golden(text: str) -> str:
    return dedent(text).strip("\n")


def test_a_regression(result_of: ResultOf, machine: MachineRecord) -> None:
    result = result_of("REGRESSED", floor_tok_s=14000.0)

    assert render(result, machine) == golden(
        """
        REGRESSED  tests/test_speed.py::test_step
          5.1 % slower than the baseline, tolerance 3 %: unchanged code would look this
          slow in fewer than 1 run in 100.
          Each of 2 sessions alone is slower than the baseline.

          tok/s     13,740 now · 14,480 baseline (real tokens)
          change    −5.1 % · 99 % interval −6.4 … −3.8 %
          tolerance 3 % · smallest slow-down that shows 1.9 %
          floor     14,000 tok/s
          step      p50 15.8 ms · p95 16.2 ms · max 31 ms
          measured  200 steps a session after 24 warm-up steps
          sessions  13,720 · 13,760 tok/s, set aside: 11,020 tok/s
          queue     features: put waits 0.21 % · get waits 41 % · depth 0.3 of 8 · 12
                    dips below 2
          machine   1 × NVIDIA H200 SXM · AMD EPYC 9654, 16 cores
          versions  Python 3.11.9, torch 2.11.0, CUDA 13.0 · commit a1b2c3d4e, 1 file
                    changed
        """
    )


def test_no_baseline_in_plain_ascii(result_of: ResultOf, machine: MachineRecord) -> None:
    result = result_of(
        "NO_BASELINE", **UNCOMPARED, queues=None, sessions=[{"tok_s": 831.62, "set_aside": None}]
    )

    assert render(result, machine, width=60, encoding="ascii") == golden(
        r"""
        NO_BASELINE  tests/test_speed.py::test_step
          No baseline for this machine class, cpu-amd-epyc-2c.

          tok/s     13,740 (real tokens)
          tolerance 3 %
          step      p50 15.8 ms | p95 16.2 ms | max 31 ms
          measured  200 steps a session after 24 warm-up steps
          session   831.6 tok/s
          machine   1 x NVIDIA H200 SXM | AMD EPYC 9654, 16 cores
          versions  Python 3.11.9, torch 2.11.0, CUDA 13.0 | commit
                    a1b2c3d4e, 1 file changed

          To store one:
          pytest --tokbudget-refresh "first baseline" \
              tests/test_speed.py::test_step
        """
    )


def test_a_failure_has_nothing_but_its_reason(machine: MachineRecord) -> None:
    result = TestResult(nodeid="a.py::b", outcome="FAILED", reason="step 17 returned None")

    assert render(result, machine) == "FAILED  a.py::b\n  step 17 returned None"


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("width", [40, 60, 80, 132])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_no_line_is_wider_than_asked(
    result_of: ResultOf, machine: MachineRecord, outcome: str, width: int, encoding: str
) -> None:
    result = result_of(outcome, nodeid="tests/" + "deep/" * 20 + "test_ünï.py::test_x[a b-'c'-→]")

    text = render(result, machine, width=width, encoding=encoding)

    assert max(map(len, text.splitlines())) <= width
    assert text.encode(encoding)
    assert "\x1b" not in text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_colour_changes_nothing_but_colour(
    result_of: ResultOf, machine: MachineRecord, outcome: str
) -> None:
    plain = render(result_of(outcome), machine)
    coloured = render(result_of(outcome), machine, color=True)

    assert outcome in STYLES
    assert coloured.startswith("\x1b[")
    stripped = [line.rstrip() for line in ANSI.sub("", coloured).splitlines()]
    assert stripped == plain.splitlines()


def test_the_terminals_environment_has_no_say(
    result_of: ResultOf, machine: MachineRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [render(result_of("PASS"), machine, width=60, color=one) for one in (True, False)]
    for name, value in (("TERM", "dumb"), ("COLUMNS", "20"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)

    found = [render(result_of("PASS"), machine, width=60, color=one) for one in (True, False)]

    assert found == expected


def test_markup_in_names_is_text(result_of: ResultOf, machine: MachineRecord) -> None:
    result = result_of("PASS", nodeid="a.py::b[bold]", reason="[red]no[/red] :smile:")

    text = render(result, machine)

    assert "a.py::b[bold]" in text
    assert "[red]no[/red] :smile:" in text


def test_summary_lines_align(result_of: ResultOf) -> None:
    lines = [
        summary_line(result_of("PASS")),
        summary_line(result_of("WORKLOAD_CHANGED", **UNCOMPARED)),
        summary_line(TestResult(nodeid="a.py::b", outcome="FAILED", reason="")),
    ]

    assert lines == [
        "PASS                 13,740 tok/s   −5.1 %  tests/test_speed.py::test_step",
        "WORKLOAD_CHANGED     13,740 tok/s           tests/test_speed.py::test_step",
        "FAILED                          -           a.py::b",
    ]


def test_the_family_counts_comparisons(result_of: ResultOf) -> None:
    results = [result_of("PASS"), result_of("REGRESSED"), result_of("NO_BASELINE", **UNCOMPARED)]

    assert family_line(results) == (
        "2 tests judged, at most 1 % false alarms each: at most 0.02 to expect"
    )
    assert family_line(results[2:]) == ""
