"""``--tokbudget-inprocess``: the body runs here, is shown, never stored nor compared."""

from __future__ import annotations

import pytest

from .conftest import Project


@pytest.mark.parametrize("args", [("--tokbudget-inprocess",), ("--pdb",)])
def test_the_body_runs_in_this_process(bare_project: Project, args: tuple[str, ...]) -> None:
    bare_project.write(
        "test_it.py",
        "import os, pytest\n"
        "from steps import step\n"
        "@pytest.fixture(scope='session')\n"
        "def pid(): return os.getpid()\n"
        "def test_here(pid): assert pid == os.getpid()\n"
        "@pytest.mark.tokbudget(steps=8, warmup=1)\n"
        "def test_step(tokbudget, pid):\n"
        "    tokbudget(step)\n"
        "    assert pid == os.getpid()\n",
    )

    result = bare_project.run("--tokbudget", *args)

    result.assert_outcomes(passed=2)
    assert not bare_project.baseline_files
    assert bare_project.only_test["outcome"] == "NOT_JUDGED"
    assert bare_project.only_test["tok_s"] > 0
    result.stdout.fnmatch_lines(["*never stored*"])


def test_a_test_that_measures_nothing_fails(bare_project: Project) -> None:
    bare_project.write("test_it.py", "def test_step(tokbudget): pass\n")

    result = bare_project.run("--tokbudget", "--tokbudget-inprocess")

    result.assert_outcomes(failed=1)
