"""``--tokbudget-against`` in real repositories, with real pairs of workers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import TEST, Project

QUICK = """
from pytest_tokbudget.launching import pair
pair.STEPPING_NS = 150_000_000
"""
STEP = "import time\ndef step():\n    time.sleep({ms} / 1e3)\n    return 1024\n"
BUSY = (
    "def pack():\n    return sum(range({thousand}_000))\ndef step():\n    pack()\n    return 1024\n"
)
ALONE = ("-p", "pytest_tokbudget.plugin")
"""No other plugin: a worker then starts in half the time."""


class Repository:
    """The project, in git."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        self.git("init", "-q")
        project.write("conftest.py", QUICK)
        project.write(".gitignore", "__pycache__/\n")

    def git(self, *args: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
        done = subprocess.run(
            command, cwd=self.project.pytester.path, capture_output=True, check=True, text=True
        )
        return done.stdout

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            self.project.write(f"{name}.py", text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a commit")
        return self.git("rev-parse", "HEAD").strip()

    def run(self, *args: str) -> pytest.RunResult:
        evidence = ("-o", f"tokbudget_evidence={self.project.evidence}")
        return self.project.pytester.runpytest_subprocess(*ALONE, *evidence, *args)

    def left_behind(self) -> list[str]:
        return [line for line in self.git("worktree", "list").splitlines() if "tokbudget" in line]


@pytest.fixture
def repository(bare_project: Project) -> Repository:
    """A repository without a commit."""
    return Repository(bare_project)


def test_an_unchanged_tree_passes(repository: Repository) -> None:
    sha = repository.commit(steps=STEP.format(ms=4), test_it=TEST)
    repository.project.write("note.py", "")

    result = repository.run("--tokbudget-against", "HEAD")

    assert result.ret == 0, result.stdout.str()
    text = result.stdout.str()
    assert f"HEAD ({sha[:10]})" in text
    assert "pairs of fresh processes" in text
    assert "Uncommitted changes are part of what was measured: note.py." in text
    test = repository.project.only_test
    assert test["outcome"] == "PASS"
    assert test["baseline_tok_s"] == pytest.approx(test["tok_s"], rel=0.3)
    assert len(test["sessions"]) >= 4
    # the pauses between the blocks are in no step
    assert test["step_ms"]["max"] < 100
    assert not repository.left_behind()
    assert not repository.project.baseline_files


def test_a_slow_down_fails_also_where_the_ref_has_no_such_test(repository: Repository) -> None:
    repository.commit(steps=BUSY.format(thousand=200))
    repository.commit(steps=BUSY.format(thousand=600), test_it=TEST)
    repository.project.evidence = "on-fail"

    result = repository.run("--tokbudget-against", "HEAD~1")

    result.assert_outcomes(failed=1)
    text = " ".join(result.stdout.str().split())
    assert "slower than HEAD~1 (" in text
    assert "unchanged code would look this slow in fewer than 1 run in 100" in text
    assert "This test does not exist at HEAD~1" in text
    test = repository.project.only_test
    assert test["change_pct"] < -40
    # The evidence of both sides says which line it was.
    (first, *_) = test["findings"]
    assert (first["file"], first["line"]) == ("steps.py", 2)
    assert first["delta_ms_per_step"] > first["baseline_ms_per_step"] > 0
    assert test["sessions"][-1]["set_aside"] == "measured after the verdict"
    assert not repository.left_behind()


WATCHED = """
from steps import step
import pytest, threading
from pytest_tokbudget.measuring import paced_watch
paced_watch.HOLD_S = .2
@pytest.mark.tokbudget(steps=25, warmup=2, tolerance='40%')
def test_step(tokbudget):
    over = threading.Event()
    def work():
        with tokbudget.recorder.worker('trainer', role='target'):
            while not over.is_set():
                tokbudget.recorder.step_end(tokens=step())
    def deaf():
        with tokbudget.recorder.worker('deaf', role='loader'):
            over.wait()
    threads = [threading.Thread(target=each) for each in (WORKERS)]
    for thread in threads:
        thread.start()
    try:
        tokbudget.watch()
    finally:
        over.set()
        for thread in threads:
            thread.join()
"""


def test_a_pipeline_that_runs_itself_is_held_at_its_marks(repository: Repository) -> None:
    test = WATCHED.replace("WORKERS", "work,")
    repository.commit(steps=STEP.format(ms=4), test_it=test)

    result = repository.run("--tokbudget-against", "HEAD")

    assert result.ret == 0, result.stdout.str()
    assert "Whole sessions alternated" not in result.stdout.str()
    assert repository.project.only_test["step_ms"]["max"] < 100


def test_one_that_cannot_be_held_alternates_whole_sessions(repository: Repository) -> None:
    test = WATCHED.replace("WORKERS", "work, deaf")
    repository.commit(steps=STEP.format(ms=4), test_it=test)

    result = repository.run("--tokbudget-against", "HEAD", "--tokbudget-max-time", "1s")

    assert result.ret == 75, result.stdout.str()
    text = " ".join(result.stdout.str().split())
    assert "Whole sessions alternated, not steps: worker 'deaf' came to no mark" in text
    assert len(repository.project.only_test["sessions"]) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("pytest.skip('no data there')", "the test was skipped there: no data there"),
        ("raise LookupError('no such model')", "no such model"),
    ],
)
def test_a_ref_that_cannot_be_measured_fails(
    repository: Repository, body: str, expected: str
) -> None:
    broken = TEST.replace("    tokbudget(step)", f"    {body}")
    repository.commit(steps=STEP.format(ms=4), test_it=broken)
    repository.commit(test_it=TEST)

    result = repository.run("--tokbudget-against", "HEAD~1")

    result.assert_outcomes(failed=1)
    assert "nothing to compare with at HEAD~1" in result.stdout.str()
    assert expected in result.stdout.str()


def test_a_copy_of_the_project_elsewhere_fails_closed(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "elsewhere" / "site-packages"
    site.mkdir(parents=True)
    (site / "steps.py").write_text(STEP.format(ms=4))
    monkeypatch.setenv("PYTHONPATH", str(site))
    repository.project.write("pytest.ini", "[pytest]\n")
    repository.project.write("src/steps.py", STEP.format(ms=4))
    repository.git("rm", "-q", "--cached", "--ignore-unmatch", "steps.py")
    (repository.project.pytester.path / "steps.py").unlink()
    repository.commit(test_it=TEST)

    result = repository.run("--tokbudget-against", "HEAD")

    result.assert_outcomes(failed=1)
    assert "worth nothing" in result.stdout.str()
    assert "module steps came from" in result.stdout.str()


def test_a_build_that_fails_fails_the_test(repository: Repository) -> None:
    repository.project.write(
        "pytest.ini", "[pytest]\npythonpath = .\ntokbudget_against_build = echo no nvcc; exit 2\n"
    )
    repository.commit(steps=STEP.format(ms=4), test_it=TEST)

    result = repository.run("--tokbudget-against", "HEAD")

    result.assert_outcomes(failed=1)
    assert "exit status 2" in result.stdout.str()
    assert "no nvcc" in result.stdout.str()
    assert not repository.left_behind()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--tokbudget-against", "no-such-ref"), "names no commit"),
        (("--tokbudget-against", ""), "name a branch"),
        (("--tokbudget-against", "HEAD", "--tokbudget-refresh", "why"), "exclude each other"),
        (("--tokbudget-against", "HEAD", "--tokbudget-append"), "exclude each other"),
        (("--tokbudget-against", "HEAD", "--tokbudget-missing=record"), "exclude each other"),
        (("--tokbudget-against", "HEAD", "--tokbudget-inprocess"), "exclude each other"),
        (("--tokbudget-against", "HEAD", "--tokbudget-max-time", "soon"), "'soon' is not a time"),
        (("--tokbudget-against", "HEAD", "--tokbudget-max-time", "0s"), "'0s' is not a time"),
    ],
)
def test_usage_errors(repository: Repository, args: tuple[str, ...], expected: str) -> None:
    repository.commit(steps=STEP.format(ms=4), test_it=TEST)

    result = repository.run(*args)

    assert result.ret == 4, result.stdout.str()
    assert expected in result.stderr.str() + result.stdout.str()
    assert not repository.left_behind()


def test_outside_git_it_is_a_usage_error(project: Project) -> None:
    result = project.run("--tokbudget-against", "HEAD", GIT_CEILING_DIRECTORIES="/")

    assert result.ret == 4
    assert "git repository" in result.stderr.str() + result.stdout.str()


def test_counters_of_both_sides_are_compared(repository: Repository) -> None:
    repository.commit(steps=STEP.format(ms=4), test_it=TEST)
    gating = TEST.replace("tokbudget(step)", "tokbudget(step, counters='fail')")
    repository.commit(steps=STEP.format(ms=4).replace("1024", "2048"), test_it=gating)

    result = repository.run("--tokbudget-against", "HEAD~1", "--tokbudget-max-time", "1s")

    assert result.ret == 75, result.stdout.str()
    test = repository.project.only_test
    assert "tokens 1,024 → 2,048 a step in every step of 1 session (HEAD~1 (" in test["reason"]
    assert "5 pairs that all show it would prove it (--tokbudget-max-time)" in test["reason"]
    assert test["changed_counters"] == {"tokens": [1024, 2048]}
    assert [one["cause"] for one in test["findings"]] == ["counter: tokens"]


@pytest.mark.parametrize(("ini", "args"), [("1s", ()), ("1h", ("--tokbudget-max-time=1s",))])
def test_max_time_comes_from_the_closest(
    repository: Repository, ini: str, args: tuple[str, ...]
) -> None:
    repository.project.write(
        "pytest.ini", f"[pytest]\npythonpath = .\ntokbudget_max_time = {ini}\n"
    )
    repository.commit(steps=STEP.format(ms=4), test_it=TEST)

    result = repository.run("--tokbudget-against", "HEAD", *args)

    assert result.ret == 75
    assert "4 are the fewest that allow a verdict" in " ".join(result.stdout.str().split())
    assert len(repository.project.only_test["sessions"]) == 1
