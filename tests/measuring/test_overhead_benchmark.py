"""The overhead benchmark's own arithmetic, and that it runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from benchmarks.overhead import main, median_interval


@pytest.mark.parametrize(("count", "rank"), [(5, 1), (9, 2), (15, 4), (25, 8)])
def test_the_interval_is_that_of_the_sign_test(count: int, rank: int) -> None:
    values = [float(i) for i in range(count)]
    found = median_interval(values[::-1])
    assert found.value == (count - 1) / 2
    assert (found.low, found.high) == (rank - 1, count - rank)


@pytest.mark.parametrize("count", [9, 12])
def test_the_coverage_is_that_of_all_ways_the_coins_fall(count: int) -> None:
    """Each value lies below the true median with probability ½: try every way."""
    found = median_interval([float(i) for i in range(count)])
    inside = sum(
        int(found.low) < below <= int(found.high)
        for below in (sum(coins) for coins in itertools.product((0, 1), repeat=count))
    )
    assert inside / 2**count >= 0.95


def test_marks_are_timed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "marks", "--json", str(tmp_path / "out.json")]) == 0
    marks = json.loads((tmp_path / "out.json").read_text())["marks"]
    assert set(marks) > {"mark", "list.append"}
    assert marks["mark"]["ratio_to_list_append"] > 1
    assert "one mark" in capsys.readouterr().out
