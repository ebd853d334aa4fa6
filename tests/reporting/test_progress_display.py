"""Progress on a terminal and in a log, with a clock of our own."""

from __future__ import annotations

import io
import re

import pytest

from pytest_tokbudget.reporting.progress import make_progress
from pytest_tokbudget.testing import FakeClock

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def visible(text: str) -> list[str]:
    """What was drawn, one drawing a line."""
    return [line for line in re.split(r"[\r\n]+", ANSI.sub("", text)) if line]


def test_a_log_gets_a_line_at_the_start_and_every_half_minute() -> None:
    stream, clock = io.StringIO(), FakeClock()
    progress = make_progress(stream, is_tty=False, monotonic_ns=clock.monotonic_ns)

    progress.session_started("a.py::b", 1, 3)
    for step in range(1, 71):
        clock.advance(1)
        progress.update("timing pass" if step > 40 else "warm-up", step)
    progress.session_ended()
    progress.update("timing pass", 71)
    clock.advance(1)
    progress.session_started("a.py::b", 2, 3)

    assert stream.getvalue().splitlines() == [
        "tokbudget: a.py::b: session 1 of 3, started",
        "tokbudget: a.py::b: session 1 of 3, warm-up, 30 steps, 30 s",
        "tokbudget: a.py::b: session 1 of 3, timing pass, 60 steps, 60 s",
        "tokbudget: a.py::b: session 2 of 3, started",
    ]


def test_a_terminal_gets_one_line_that_is_redrawn_and_erased() -> None:
    stream, clock = io.StringIO(), FakeClock()
    progress = make_progress(stream, is_tty=True, monotonic_ns=clock.monotonic_ns)

    progress.session_started("a.py::b", 1, 3)
    for step in range(1, 5):
        clock.advance(0.06)
        progress.update("warm-up", step)
    clock.advance(60)
    progress.update("timing pass", 1200)
    progress.session_ended()

    lines = visible(stream.getvalue())
    assert lines[0] == "session 1 of 3 · starting · 0 s · a.py::b"
    assert "session 1 of 3 · warm-up · 2 steps · 0 s · a.py::b" in lines
    assert not any("1 step ·" in line or "3 steps" in line for line in lines)
    assert "session 1 of 3 · timing pass · 1,200 steps · 60 s · a.py::b" in lines
    assert stream.getvalue().endswith("\x1b[2K")
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1


@pytest.mark.parametrize("is_tty", [True, False])
def test_closing_twice_and_after_a_session_writes_no_more(is_tty: bool) -> None:
    stream, clock = io.StringIO(), FakeClock()
    progress = make_progress(stream, is_tty=is_tty, monotonic_ns=clock.monotonic_ns)
    progress.session_started("a.py::b", 1, 1)
    progress.close()
    written = stream.getvalue()

    clock.advance(100)
    progress.update("timing pass", 3)
    progress.session_ended()
    progress.session_started("a.py::b", 1, 1)
    progress.close()

    assert stream.getvalue() == written


@pytest.mark.parametrize("is_tty", [True, False])
def test_a_narrow_character_set_is_respected(is_tty: bool) -> None:
    raw, clock = io.BytesIO(), FakeClock()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    progress = make_progress(stream, is_tty=is_tty, monotonic_ns=clock.monotonic_ns)

    progress.session_started("tests/test_ü.py::" + "b" * 200, 1, 1)
    progress.close()

    stream.flush()
    assert b"session 1 of 1" in raw.getvalue()
