"""``counters=`` of marker, call and ini: exact counters against those of the baseline."""

from __future__ import annotations

import json
from collections.abc import Callable

from .conftest import Project

TEST = """
import os
import pytest
from steps import step
@pytest.mark.tokbudget(steps=20, warmup=1, tolerance="90%", counters="fail")
def test_step(tokbudget):
    tokbudget(lambda: step() * int(os.environ.get("TIMES", 1)))
"""


def test_another_number_of_tokens_a_step_fails_and_lost_counters_too(bare_project: Project) -> None:
    bare_project.write("test_it.py", TEST)
    assert bare_project.run("--tokbudget-refresh", "first").ret == 0
    assert bare_project.baseline["anchor"][0]["counters"]["counts"] == {
        "recompilations": 0,
        "tokens": 1024,
    }

    changed = bare_project.run("--tokbudget", TIMES="2")

    assert changed.ret == 1
    test = bare_project.only_test
    assert (test["outcome"], len(test["sessions"])) == ("WORKLOAD_CHANGED", 3)
    assert test["changed_counters"] == {"tokens": [1024, 2048]}
    (found,) = (one for one in test["findings"] if one["cause"] == "counter: tokens")
    assert (found["baseline_count_per_step"], found["count_per_step"]) == (1024, 2048)
    assert "what changed" not in changed.stdout.str(), "the verdict has told it"
    assert "tokens 1,024 → 2,048 a step in every step of 3 sessions" in test["reason"]

    (path,) = bare_project.baseline_files
    data = json.loads(path.read_text())
    for session in data["anchor"]:
        del session["counters"]
    path.write_text(json.dumps(data))
    lost = bare_project.run("--tokbudget")
    assert lost.ret == 1
    lost.stdout.fnmatch_lines(['*pytest --tokbudget-refresh "why" test_it.py::test_step*'])


def test_bad_values_are_usage_errors(bare_project: Project, ini: Callable[[str], None]) -> None:
    bare_project.write("test_it.py", TEST.replace('"fail"', '"warn"'))
    result = bare_project.run("--tokbudget")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*test_it.py::test_step: counters='warn' is not one of*"])

    ini("tokbudget_counters = sometimes")
    result = bare_project.run("--tokbudget")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*tokbudget_counters: 'sometimes' is not one of fail, show*"])
