"""``--tokbudget-missing``: command line, ini, both."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Project


@pytest.mark.parametrize(
    ("lines", "args", "outcome"),
    [
        ("", ("--tokbudget-missing", "fail"), "failed"),
        ("", ("--tokbudget-missing", "skip"), "skipped"),
        ("", ("--tokbudget-missing", "record"), "passed"),
        ("tokbudget_missing = skip", (), "skipped"),
        ("tokbudget_missing = skip", ("--tokbudget-missing=fail",), "failed"),
    ],
)
def test_no_baseline(
    project: Project,
    ini: Callable[[str], None],
    lines: str,
    args: tuple[str, ...],
    outcome: str,
) -> None:
    ini(lines)

    result = project.run("--tokbudget", "-rs", *args)

    result.assert_outcomes(**{outcome: 1})
    assert len(project.baseline_files) == (outcome == "passed")
    if outcome == "passed":
        assert project.only_test["outcome"] == "RECORDED"
        assert project.baseline["log"][0]["reason"].startswith("recorded")
        result.stdout.fnmatch_lines(["*RECORDED*"])


def test_record_under_ci_needs_a_named_directory(project: Project) -> None:
    refused = project.run("--tokbudget", "--tokbudget-missing=record", CI="true")
    assert refused.ret == 4
    assert "--tokbudget-baselines" in refused.stderr.str() + refused.stdout.str()

    named = project.run(
        "--tokbudget",
        "--tokbudget-missing=record",
        "--tokbudget-baselines=kept",
        "--tokbudget-sessions=3",
        CI="true",
    )
    assert named.ret == 0, named.stdout.str()
    assert len(list((project.pytester.path / "kept").rglob("test_it*.json"))) == 1


def test_another_machine_class_is_named(project: Project) -> None:
    project.run(
        "--tokbudget-refresh=first", "--tokbudget-sessions=3", TOKBUDGET_MACHINE="other-pool"
    )

    result = project.run("--tokbudget")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*other-pool*"])
