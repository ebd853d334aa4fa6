"""``--tokbudget-report``: command line, ini, both; the directory ignores itself in git."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from .conftest import Project

CONTRACT = """
nodeid outcome reason tok_s token_kind baseline_tok_s change_pct ci_pct mde_pct tolerance_pct
floor_tok_s sessions steps warmup_steps step_ms devices threads hot_frames queues counters findings
perturbation native_frames native_sampling unavailable
"""


@pytest.mark.parametrize(
    ("lines", "args", "directory"),
    [
        ("", (), ".tokbudget"),
        ("", ("--tokbudget-report=out",), "out"),
        ("tokbudget_report = from_ini", (), "from_ini"),
        ("tokbudget_report = from_ini", ("--tokbudget-report=out",), "out"),
    ],
)
def test_where_artifacts_go(
    project: Project,
    ini: Callable[[str], None],
    lines: str,
    args: tuple[str, ...],
    directory: str,
) -> None:
    ini(lines)

    project.run("--tokbudget", *args)

    report = project.pytester.path / directory
    data = json.loads((report / "run.json").read_text())
    assert set(data) == {"schema", "created", "commit", "machine", "tests"}
    assert set(CONTRACT.split()) <= set(data["tests"][0])
    assert set(data["tests"][0]["step_ms"]) == {"p50", "p95", "max"}
    assert "*" in (report / ".gitignore").read_text()
    assert list((report / "runs").iterdir())


def test_what_is_not_measured_is_null_with_its_reason(project: Project) -> None:
    project.run("--tokbudget")

    test = project.only_test
    for name in ("hot_frames", "counters", "threads"):
        assert test[name] is None
        assert test["unavailable"][name]


def test_a_report_directory_that_cannot_be_written_is_a_usage_error(project: Project) -> None:
    project.write("taken", "a file")

    result = project.run("--tokbudget", "--tokbudget-report", "taken/out")

    assert result.ret == 4
    result.stderr.fnmatch_lines(["*taken/out: cannot write there*"])


def test_no_earlier_result_survives_a_run_that_measures_nothing(project: Project) -> None:
    assert project.run("--tokbudget").ret == 1
    assert project.only_test["outcome"] == "NO_BASELINE"

    assert project.run("--tokbudget", "-k", "nothing").ret == 5

    assert project.run_json["tests"] == []


def test_the_reason_of_a_failed_body_is_one_sentence(project: Project) -> None:
    project.write("test_it.py", "def test_none(tokbudget):\n    tokbudget(lambda: None)\n")

    assert project.run("--tokbudget").ret == 1

    reason = project.only_test["reason"]
    assert "StepError: step 1 (warm-up) returned None" in reason
    assert "\n" not in reason
