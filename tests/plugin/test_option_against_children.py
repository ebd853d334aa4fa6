"""``--tokbudget-against`` where the step is done by a child process, in a real environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..launching.ab_repository import HATCHLING
from ..launching.environments import Environment
from .conftest import Project
from .test_option_against import ALONE, QUICK, Repository

TEST = """
import subprocess, sys
import pytest
@pytest.mark.tokbudget(steps=25, warmup=2, tolerance="30%")
def test_step(tokbudget):
    START
    def step():
        child.stdin.write("step\\n")
        child.stdin.flush()
        return int(child.stdout.readline())
    tokbudget(step)
    child.stdin.close()
    assert child.wait() == 0
"""
POPEN = (
    "child = subprocess.Popen([sys.executable, '-m', 'proj'], text=True,\n"
    "        stdin=subprocess.PIPE, stdout=subprocess.PIPE)"
)
SERVE = """
import sys, time
for line in sys.stdin:
    time.sleep({ms} / 1e3)
    print(1024, flush=True)
"""


@pytest.fixture
def repository(bare_project: Project) -> Repository:
    """A project in ``src``, whose tests import nothing of it; HEAD takes three times as long."""
    repository = Repository(bare_project)
    project = bare_project
    (project.pytester.path / "steps.py").unlink()
    project.write("pytest.ini", "[pytest]\n")
    project.write("conftest.py", QUICK)
    project.write("pyproject.toml", HATCHLING.format(package="src/proj"))
    project.write("src/proj/__init__.py", "")
    project.write("src/proj/__main__.py", SERVE.format(ms=5))
    repository.commit(test_it=TEST.replace("START", POPEN))
    project.write("src/proj/__main__.py", SERVE.format(ms=15))
    repository.commit()
    return repository


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Where the project is installed; beside the project, not in it."""
    return Environment.create(tmp_path / "environment")


def run(repository: Repository, environment: Environment, ref: str) -> pytest.RunResult:
    project = repository.project
    command = [environment.python, "-m", "pytest", *ALONE, "-o", "tokbudget_evidence=never"]
    return project.pytester.run(*command, "--tokbudget-against", ref)


def test_a_child_that_runs_an_installed_copy_fails_closed(
    repository: Repository, environment: Environment
) -> None:
    top = repository.project.pytester.path
    environment.install(top, ".")

    result = run(repository, environment, "HEAD~1")

    result.assert_outcomes(failed=1)
    text = " ".join(result.stdout.str().split())
    assert "worth nothing" in text
    assert (
        f"such as a child of this side or the other, opened {environment.site}/proj/__init__.py"
        in text
    )
    assert f"the distribution the-project, which was installed from {top}" in text
    assert f"install it editable (pip install -e {top}), or uninstall it" in text
    assert f"started here: {environment.python} -m proj" in text
    assert not repository.left_behind()


@pytest.mark.parametrize(("ref", "outcome"), [("HEAD~1", "REGRESSED"), ("HEAD", "PASS")])
def test_a_child_of_an_editable_install_is_judged(
    repository: Repository, environment: Environment, ref: str, outcome: str
) -> None:
    environment.install(repository.project.pytester.path, "-e", ".")

    result = run(repository, environment, ref)

    assert repository.project.only_test["outcome"] == outcome, result.stdout.str()


def test_other_programs_beside_a_copy_are_no_fault(
    repository: Repository, environment: Environment
) -> None:
    top = repository.project.pytester.path
    environment.install(top, ".")
    start = "subprocess.run(['git', '--version'], check=True)\n    " + POPEN.replace(
        "'-m', 'proj'", f"'-c', {SERVE.format(ms=5)!r}"
    )
    repository.commit(test_it=TEST.replace("START", start))

    result = run(repository, environment, "HEAD")

    assert repository.project.only_test["outcome"] == "PASS", result.stdout.str()
