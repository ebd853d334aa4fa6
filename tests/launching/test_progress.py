"""The progress block, across processes and across a death."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_tokbudget.launching.progress import (
    SLOT_BYTES,
    SLOT_COUNT,
    ProgressBlock,
    ProgressSnapshot,
    last_phase,
    phase_name,
)

WRITER = """
import os, sys
from pytest_tokbudget.launching.progress import ProgressBlock
block = ProgressBlock(sys.argv[1])
block.slots[0], block.slots[1], block.slots[2], block.slots[3] = 2**62, 5, 7, 2
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_wrote_is_read(tmp_path: Path) -> None:
    block = ProgressBlock(tmp_path / "block", create=True)
    assert block.snapshot() == ProgressSnapshot(0, 0, 0, 0)

    done = subprocess.run([sys.executable, "-c", WRITER, tmp_path / "block"], check=False)

    assert done.returncode == -9
    assert block.snapshot() == ProgressSnapshot(
        last_mark_ns=2**62, allowed_silence_ns=5, counting_marks=7, phase=2
    )


def test_it_meets_what_the_recorder_asks_for(tmp_path: Path) -> None:
    """``measuring.beat`` writes through a memory view of signed 64-bit integers."""
    from pytest_tokbudget.measuring import beat

    block = ProgressBlock(tmp_path / "block", create=True)

    beat.enter(block.slots, beat.TIMING, now_ns=123, median_step_ns=1)

    moment = block.snapshot()
    assert moment.phase == beat.TIMING
    assert phase_name(moment.phase) == "timing pass"
    assert (moment.last_mark_ns, moment.allowed_silence_ns) == (123, 10_000_000_000)


def test_creating_empties_and_opening_keeps(tmp_path: Path) -> None:
    first = ProgressBlock(tmp_path / "block", create=True)
    first.slots[2] = 9
    assert ProgressBlock(tmp_path / "block").snapshot().counting_marks == 9
    first.close()

    assert ProgressBlock(tmp_path / "block", create=True).snapshot().counting_marks == 0
    assert (tmp_path / "block").stat().st_size == SLOT_COUNT * SLOT_BYTES


def test_a_closed_block_refuses_and_a_missing_one_too(tmp_path: Path) -> None:
    block = ProgressBlock(tmp_path / "block", create=True)
    block.close()

    with pytest.raises(ValueError, match="released"):
        block.snapshot()
    with pytest.raises(FileNotFoundError):
        ProgressBlock(tmp_path / "missing")


def test_phase_names() -> None:
    assert [phase_name(code) for code in range(5)] == [
        "setup", "warm-up", "timing pass", "evidence pass", "done",
    ]  # fmt: skip
    assert phase_name(8) == "the end after a failed evidence pass"
    assert (last_phase(3), last_phase(8)) == ("evidence pass", "evidence pass")
    assert phase_name(17) == "unknown phase 17"
