"""``--tokbudget-measure N``: sessions for their own sake."""

from __future__ import annotations

import pytest

from .conftest import Project


def test_sessions_are_measured_and_nothing_is_judged_or_stored(project: Project) -> None:
    project.have_baseline()
    before = project.baseline_files[0].read_bytes()
    result = project.run("--tokbudget-measure", "2", slower=3)
    assert result.ret == 0
    test = project.only_test
    assert test["outcome"] == "NOT_JUDGED"
    assert len(test["sessions"]) == 2
    assert test["baseline_tok_s"] is None
    assert "compared with nothing" in test["unavailable"]["change_pct"]
    assert project.baseline_files[0].read_bytes() == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("0",), "--tokbudget-measure: '0' is not a whole number of at least 1"),
        (("2", "--tokbudget-refresh", "x"), "--tokbudget-refresh exclude each other"),
        (("2", "--tokbudget-append"), "--tokbudget-append exclude each other"),
        (("2", "--tokbudget-sessions", "3"), "--tokbudget-sessions exclude each other"),
    ],
)
def test_what_does_not_go_together_is_refused(
    project: Project, args: tuple[str, ...], said: str
) -> None:
    result = project.run("--tokbudget-measure", *args)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{said}*"])
