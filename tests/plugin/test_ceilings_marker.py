"""``ceilings=`` of marker and call: figures of run.json, judged without a baseline."""

from __future__ import annotations

from .conftest import Project

TEST = """
import pytest
from steps import step
@pytest.mark.tokbudget(steps=20, warmup=1, tolerance=None, ceilings={"step_ms.p95": "40 ms"})
def test_step(tokbudget):
    tokbudget(step)
"""


def test_a_ceiling_needs_no_baseline_and_fails_slow_steps(bare_project: Project) -> None:
    bare_project.write("test_it.py", TEST)
    assert bare_project.run("--tokbudget").ret == 0
    slow = bare_project.run("--tokbudget", slower=20)
    assert slow.ret == 1
    assert bare_project.only_test["outcome"] == "REGRESSED"
    slow.stdout.fnmatch_lines(["*step_ms.p95 is 80 ms, above its ceiling of 40 ms*"])


def test_a_figure_that_was_not_measured_fails_the_test(bare_project: Project) -> None:
    bare_project.write("test_it.py", TEST.replace('"step_ms.p95": "40 ms"', '"idle_pct": "10%"'))
    result = bare_project.run("--tokbudget")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*ceiling on idle_pct cannot be judged*"])
