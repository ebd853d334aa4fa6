"""``--tokbudget-append``: sessions of an accepted commit widen the spread, never the anchor."""

from __future__ import annotations

from .conftest import Project


def test_append_keeps_the_anchor(project: Project) -> None:
    project.have_baseline()
    anchor = project.baseline["anchor"]

    result = project.run("--tokbudget", "--tokbudget-append")

    assert result.ret == 0, result.stdout.str()
    assert project.baseline["anchor"] == anchor
    assert len(project.baseline["appended"]) == 1
    assert len(project.baseline["log"]) == 1


def test_a_regressed_run_is_not_appended(project: Project) -> None:
    project.have_baseline()
    before = project.baseline_files[0].read_bytes()

    result = project.run("--tokbudget-append", slower=4)

    assert result.ret == 1
    assert project.baseline_files[0].read_bytes() == before
