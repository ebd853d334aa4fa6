from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from pytest_tokbudget.evidence.commit import read_commit


@pytest.fixture(autouse=True)
def _own_git_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")


def _git(directory: Path, *arguments: str) -> str:
    options = ("-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *options, *arguments], cwd=directory, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _repository(directory: Path) -> Path:
    directory.mkdir()
    _git(directory, "init", "-q")
    (directory / "a.py").write_text("a = 1\n")
    (directory / "b.txt").write_text("b\n")
    _git(directory, "add", ".")
    _git(directory, "commit", "-q", "-m", "one")
    return directory


def _write(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return _repository(tmp_path / "repo")


def test_a_clean_checkout(repository: Path) -> None:
    commit = read_commit(repository)

    assert commit.sha == _git(repository, "rev-parse", "HEAD")
    assert (commit.branch, commit.dirty_paths, commit.reason) == ("main", [], "")


def test_every_way_to_differ_is_seen_from_the_top_level_down(repository: Path) -> None:
    sub = repository / "sub ü"
    sub.mkdir()
    for name in ("gone.py", "moved.py", "staged.py"):
        (repository / name).write_text(f"{name}\n" * 9)
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "two")
    (repository / "b.txt").write_text("changed\n")
    (repository / "gone.py").unlink()
    _git(repository, "mv", "moved.py", "renamed.py")
    (repository / "staged.py").write_text("x")
    _git(repository, "add", "staged.py")
    (sub / "new.py").write_text("")
    (sub / "kernel.cu").write_text("")
    (sub / "notes.log").write_text("")

    assert read_commit(sub).dirty_paths == [
        "b.txt",
        "gone.py",
        "moved.py",
        "renamed.py",
        "staged.py",
        "sub ü/kernel.cu",
        "sub ü/new.py",
    ]


def test_a_file_that_was_only_touched_is_no_change(repository: Path) -> None:
    os.utime(repository / "a.py", (1, 1))

    assert read_commit(repository).dirty_paths == []


def test_ignored_and_excluded_files_are_no_changes(repository: Path) -> None:
    (repository / ".gitignore").write_text("build.py\n")
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "two")
    for name in ("build.py", "baselines/x/y.py", ".tokbudget/z.py", "sub/.tokbudget/z.py"):
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (repository / "baselines_tool.py").write_text("")

    found = read_commit(repository, exclude=[repository / "baselines"]).dirty_paths

    assert found == ["baselines_tool.py"]


def _imported(*files: Path) -> dict[str, ModuleType]:
    modules = {}
    for number, file in enumerate(files):
        module = ModuleType(f"m{number}")
        module.__file__ = str(file)
        modules[module.__name__] = module
    return modules


def test_ignored_files_that_were_imported_are_code_without_a_commit(repository: Path) -> None:
    _write(repository, ".gitignore", "fast.py\nbuild/\n_version.py\n")
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "two")
    for name in ("fast.py", "new.py", "build/slow.py", "build/unused.py", "baselines/x.py"):
        _write(repository, name, "DEPTH = 3\n")
    _write(repository, "_version.py", "__version__ = '1.2'\n")
    files = ("a.py", "fast.py", "new.py", "build/slow.py", "_version.py", "baselines/x.py")
    modules = _imported(*(repository / one for one in files), Path(os.__file__))

    found = read_commit(repository, exclude=[repository / "baselines"], modules=modules)

    assert found.dirty_paths == ["new.py"]
    assert found.untracked_modules == ["baselines/x.py", "build/slow.py", "fast.py"]
    assert read_commit(repository).untracked_modules == []


def test_what_a_submodule_tracks_is_tracked(repository: Path, tmp_path: Path) -> None:
    outer = _repository(tmp_path / "outer")
    _git(outer, "submodule", "--quiet", "add", str(repository), "inner")
    _git(outer, "commit", "-q", "-m", "two")
    _write(outer, "inner/new.py", "DEPTH = 3\n")
    modules = _imported(outer / "inner" / "a.py", outer / "inner" / "new.py")

    found = read_commit(outer, modules=modules)

    assert (found.dirty_paths, found.untracked_modules) == ([], ["inner/new.py"])


def test_exclusion_sees_through_symbolic_links(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    (repository / "baselines").mkdir()
    (repository / "baselines" / "x.py").write_text("")

    found = read_commit(tmp_path / "link", exclude=[tmp_path / "link" / "baselines"])

    assert found.dirty_paths == []


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    _git(repository, "checkout", "-q", "--detach")

    commit = read_commit(repository)

    assert commit.branch is None
    assert commit.sha is not None


def test_a_shallow_clone_is_a_checkout_like_any_other(repository: Path, tmp_path: Path) -> None:
    _git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    _git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "clone")

    assert read_commit(tmp_path / "clone").sha == _git(repository, "rev-parse", "HEAD")


def test_a_submodule_is_its_own_and_a_change_of_its_superproject(
    repository: Path, tmp_path: Path
) -> None:
    outer = _repository(tmp_path / "outer")
    _git(outer, "submodule", "--quiet", "add", str(repository), "inner")
    _git(outer, "commit", "-q", "-m", "two")
    (outer / "inner" / "a.py").write_text("changed\n")

    inner = read_commit(outer / "inner")

    assert inner.sha == _git(repository, "rev-parse", "HEAD")
    assert inner.dirty_paths == ["a.py"]
    assert read_commit(outer).dirty_paths == ["inner"]


def test_variables_of_a_git_hook_do_not_lead_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _repository(tmp_path / "other")
    _git(other, "commit", "-q", "--allow-empty", "-m", "two")
    expected = _git(repository, "rev-parse", "HEAD")

    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))

    assert read_commit(repository).sha == expected


def test_outside_a_repository_the_reason_is_gits_own(tmp_path: Path) -> None:
    commit = read_commit(tmp_path)

    assert commit.sha is None
    assert "not a git repository" in commit.reason


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")

    commit = read_commit(tmp_path)

    assert (commit.sha, commit.dirty_paths) == (None, [])
    assert commit.reason


def test_without_the_git_command(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))

    assert read_commit(repository).reason == "the git command was not found"
