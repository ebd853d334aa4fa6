"""``--tokbudget-inconclusive``: command line, ini, both; exit status 75."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Project

NOISY = (
    "import pytest\n"
    "from steps import step\n"
    "@pytest.mark.tokbudget(steps=8, warmup=1, tolerance='5%')\n"
    "def test_step(tokbudget): tokbudget(step)\n"
)


@pytest.fixture
def noisy(bare_project: Project) -> Project:
    """A project whose stored sessions differ so much that nothing can be decided."""
    import json

    bare_project.write("test_it.py", NOISY)
    bare_project.have_baseline()
    (path,) = bare_project.baseline_files
    data = json.loads(path.read_text())
    for session, share in zip(data["anchor"], (0.5, 1.0, 1.6)):
        session["tok_s"] *= share
    path.write_text(json.dumps(data))
    return bare_project


@pytest.mark.parametrize(
    ("lines", "args", "status"),
    [
        ("", (), 75),
        ("", ("--tokbudget-inconclusive=warn",), 0),
        ("tokbudget_inconclusive = warn", (), 0),
        ("tokbudget_inconclusive = warn", ("--tokbudget-inconclusive=fail",), 75),
    ],
)
def test_noise_larger_than_the_tolerance(
    noisy: Project, ini: Callable[[str], None], lines: str, args: tuple[str, ...], status: int
) -> None:
    ini(lines)

    result = noisy.run("--tokbudget", *args)

    assert result.ret == status, result.stdout.str()
    assert noisy.only_test["outcome"] == "INCONCLUSIVE"
    assert len(noisy.only_test["sessions"]) == 3
    result.stdout.fnmatch_lines(["*INCONCLUSIVE*"])


def test_another_failure_wins_over_75(noisy: Project) -> None:
    noisy.write("test_other.py", "def test_plain(): assert False\n")

    assert noisy.run("--tokbudget").ret == 1
