"""``--tokbudget-inconclusive``: command line, ini, both; exit status 75."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import geometric_mean

import pytest

from .conftest import Project

NOISY = (
    "import pytest\n"
    "from steps import step\n"
    "@pytest.mark.tokbudget(steps=8, warmup=1, tolerance='5%')\n"
    "def test_step(tokbudget): tokbudget(step)\n"
)


@pytest.fixture
def noisy(project: Project) -> Project:
    """A project whose stored sessions differ so much that nothing can be decided."""
    project.have_baseline()
    project.write("test_it.py", NOISY)
    (path,) = project.baseline_files
    data = json.loads(path.read_text())
    for session, share in zip(data["anchor"], (0.5, 1.0, 1.6)):
        session["tok_s"] *= share
        session["seconds"] /= share
    rates = [session["tok_s"] for session in data["anchor"]]
    data["log"][0]["new_tok_s"] = geometric_mean(rates)
    path.write_text(json.dumps(data))
    return project


@pytest.mark.parametrize(
    ("lines", "args", "status", "sessions"),
    [
        ("", (), 75, 3),
        ("tokbudget_sessions = 1", ("--tokbudget-inconclusive=warn",), 0, 1),
        ("tokbudget_sessions = 1\ntokbudget_inconclusive = warn", (), 0, 1),
        (
            "tokbudget_sessions = 1\ntokbudget_inconclusive = warn",
            ("--tokbudget-inconclusive=fail",),
            75,
            1,
        ),
    ],
)
def test_noise_larger_than_the_tolerance(
    noisy: Project,
    ini: Callable[[str], None],
    lines: str,
    args: tuple[str, ...],
    status: int,
    sessions: int,
) -> None:
    ini(lines)

    result = noisy.run("--tokbudget", *args)

    assert result.ret == status, result.stdout.str()
    assert noisy.only_test["outcome"] == "INCONCLUSIVE"
    assert len(noisy.only_test["sessions"]) == sessions
    result.stdout.fnmatch_lines(["*INCONCLUSIVE*"])


def test_another_failure_wins_over_75(noisy: Project) -> None:
    noisy.write("test_other.py", "def test_plain(): assert False\n")

    assert noisy.run("--tokbudget", "--tokbudget-sessions=1").ret == 1
    assert noisy.only_test["outcome"] == "INCONCLUSIVE"
