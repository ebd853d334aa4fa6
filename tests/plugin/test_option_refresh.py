"""``--tokbudget-refresh``: the anchor moves, with a reason, all tests interleaved."""

from __future__ import annotations

import subprocess

from .conftest import Project

TWO = (
    "import os, pytest\n"
    "from steps import step\n"
    "def log(name):\n"
    "    with open('order', 'a') as file: print(name, file=file)\n"
    "@pytest.mark.tokbudget(steps=10, warmup=1, tolerance='40%')\n"
    "def test_a(tokbudget):\n"
    "    log('a'); tokbudget(step)\n"
    "@pytest.mark.tokbudget(steps=10, warmup=1, tolerance='40%')\n"
    "def test_b(tokbudget):\n"
    "    log('b'); tokbudget(step)\n"
    "    assert 'BROKEN' not in os.environ\n"
)


def test_the_log_tells_old_and_new(project: Project) -> None:
    project.have_baseline()
    result = project.run(
        "--tokbudget-refresh", "twice the depth", "--tokbudget-sessions=3", slower=3
    )

    assert result.ret == 0, result.stdout.str()
    first, second = project.baseline["log"]
    assert (first["reason"], second["reason"]) == ("first", "twice the depth")
    assert second["old_tok_s"] > second["new_tok_s"]
    assert second["change_pct"] < -40
    assert len(second["change_ci_pct"]) == 2


def test_five_sessions_by_default_interleaved(bare_project: Project) -> None:
    bare_project.write("test_it.py", TWO)

    result = bare_project.run("--tokbudget-refresh", "why")

    assert result.ret == 0, result.stdout.str()
    order = (bare_project.pytester.path / "order").read_text().split()
    assert order[:10] == ["a", "b"] * 5
    assert len(bare_project.baseline_files) == 2


def test_a_failed_test_writes_nothing_and_the_other_is_stored(bare_project: Project) -> None:
    bare_project.write("test_it.py", TWO)

    result = bare_project.run("--tokbudget-refresh", "why", "--tokbudget-sessions=3", BROKEN="1")

    result.assert_outcomes(passed=1, failed=1)
    (path,) = bare_project.baseline_files
    assert "test_a" in path.name


def _commit_all(project: Project) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for args in (("init",), ("add", "."), ("commit", "-m", "all")):
        subprocess.run(
            ["git", *who, *args], cwd=project.pytester.path, check=True, capture_output=True
        )


def test_uncommitted_changes_are_refused_unless_allowed(project: Project) -> None:
    _commit_all(project)
    project.have_baseline()
    clean = project.run("--tokbudget-refresh=clean", "--tokbudget-sessions=3")
    assert clean.ret == 0, "a new baseline is no change of the code: " + clean.stdout.str()
    project.write("steps.py", (project.pytester.path / "steps.py").read_text() + "\n# changed\n")
    before = project.baseline_files[0].read_bytes()

    refused = project.run("--tokbudget-refresh=dirty", "--tokbudget-sessions=3")

    assert refused.ret == 1
    refused.stdout.fnmatch_lines(["*steps.py*"])
    assert "session 1" not in refused.stdout.str(), "it is refused before anything is measured"
    assert project.baseline_files[0].read_bytes() == before
    allowed = project.run(
        "--tokbudget-refresh=dirty", "--tokbudget-sessions=3", "--tokbudget-allow-dirty"
    )
    assert allowed.ret == 0, allowed.stdout.str()


def test_code_that_git_ignores_is_refused_where_it_was_imported(project: Project) -> None:
    steps = (project.pytester.path / "steps.py").read_text()
    imports = "import os, _version\nif 'FAST' in os.environ: import fast\n"
    project.write("steps.py", imports + steps)
    project.write(".gitignore", "_version.py\nfast.py\n")
    _commit_all(project)
    project.write("_version.py", "__version__ = version = '1.2.3'\n")
    project.write("fast.py", "DEPTH = 3\n")
    refresh = ("--tokbudget-refresh=why", "--tokbudget-sessions=3")

    unused = project.run(*refresh)
    assert unused.ret == 0, unused.stdout.str()
    before = project.baseline_files[0].read_bytes()

    refused = project.run(*refresh, FAST="1")
    assert refused.ret == 1
    text = " ".join(refused.stdout.str().split())
    assert "git does not track fast.py, which was imported and measured" in text
    assert "_version.py" not in text
    appended = project.run("--tokbudget-append", FAST="1")
    assert appended.ret == 1
    assert "git does not track fast.py" in " ".join(appended.stdout.str().split())
    assert project.baseline_files[0].read_bytes() == before

    allowed = project.run(*refresh, "--tokbudget-allow-dirty", FAST="1")
    assert allowed.ret == 0, allowed.stdout.str()
    assert project.baseline["log"][-1]["commit"].endswith("-dirty")
