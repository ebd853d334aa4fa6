"""A history as text: what stands where, and no line too wide."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis.trend import AnchorMove, Change, JobPoint, Trend
from pytest_tokbudget.records.baseline import RefreshEntry, StoredSession
from pytest_tokbudget.records.history import WorkloadHistory
from pytest_tokbudget.records.machine import Software
from pytest_tokbudget.reporting.history_text import MOST_JOBS, render_history

FIRST = StoredSession(
    tok_s=1.0,
    steps=1,
    seconds=1.0,
    warmup_steps=0,
    warmup_seconds=0.0,
    job="a",
    commit=None,
    host_hash="h",
    unix_s=0,
    software=Software(python="3", tokbudget="0"),
)
HISTORY = WorkloadHistory(
    identity="a.py::test_step", nodeid="a.py::test_step", machine="cpu-2c", sessions=[]
)


def points(rates: list[float], source: str = "run") -> list[JobPoint]:
    first = dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.timezone.utc)
    return [
        JobPoint(first + dt.timedelta(hours=one), rate, 2, source, "c0ffee1234567-dirty", FIRST)
        for one, rate in enumerate(rates)
    ]


def trend(rates: list[float], changes: list[Change], moves: list[AnchorMove]) -> Trend:
    return Trend(points(rates), changes, moves, moves[-1].since_first_pct if moves else None)


def test_a_change_parts_the_rows_and_the_level_before_it_is_zero() -> None:
    change = Change(2, 1000.0, 900.0, -10.0, (-12.0, -8.0), ("torch 2.13 → 2.14",))

    lines = render_history(HISTORY, trend([1010.0, 990, 900], [change], [])).splitlines()

    rows = [line.split() for line in lines]
    parted = next(index for index, row in enumerate(rows) if row[:1] == ["change"])
    assert rows[parted - 1][:6] == ["2026-01-02", "04:04", "c0ffee1+", "run", "x2", "990"]
    assert rows[parted + 1][4:8] == ["x2", "900", "−10", "%"]
    assert lines[-2:] == [
        "  −10 % from 2026-01-02 05:04, c0ffee123 on (1,000 → 900 tok/s, 99 % interval",
        "  −12 … −8 %); also new then: torch 2.13 → 2.14",
    ]


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([1000.0] * 3, "not looked for: 6 jobs are the fewest that can tell"),
        ([1000.0] * 7, "none found between 7 jobs"),
    ],
)
def test_no_change_is_said(rates: list[float], said: str) -> None:
    assert said in render_history(HISTORY, trend(rates, [], []))


def test_only_the_newest_jobs_are_drawn() -> None:
    text = render_history(HISTORY, trend([1000.0 + one for one in range(60)], [], []))

    assert text.count("run x2") == MOST_JOBS
    assert "1,059" in text
    assert "1,001 " not in text


def test_refreshes_and_what_they_sum_to() -> None:
    def entry(new: float, old: float | None, reason: str) -> RefreshEntry:
        return RefreshEntry(
            date="2026-01-02", commit=None, reason=reason, old_tok_s=old, new_tok_s=new
        )

    moves = [
        AnchorMove(entry(100.0, None, "the start"), None, None),
        AnchorMove(entry(98.0, 100.0, "a check"), -2.0, -2.0),
        AnchorMove(entry(96.04, 98.0, "another"), -2.0, -3.96),
    ]

    text = render_history(HISTORY, trend([], [], moves))

    assert text.index("another") < text.index("a check") < text.index("the start")
    assert "all refreshes together: −4 % against the first comparable anchor" in text
    assert "has not moved" in render_history(HISTORY, trend([], [], moves[:1]))


@settings(max_examples=40)
@example([1e9], 60, False)
@example([390625001.0, 0.00390625, 0.00390625], 60, False)
@given(
    st.lists(st.floats(0.001, 1e9), min_size=1, max_size=12),
    st.integers(60, 120),
    st.booleans(),
)
def test_no_line_is_wider_than_asked(rates: list[float], width: int, ascii_only: bool) -> None:
    encoding = "ascii" if ascii_only else "utf-8"

    text = render_history(HISTORY, trend(rates, [], []), width=width, encoding=encoding)

    text.encode(encoding)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("run x2") == len(rates)
