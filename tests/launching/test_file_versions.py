"""Every committed version of a directory's files, from real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_tokbudget.errors import LaunchError
from pytest_tokbudget.launching.file_versions import file_versions, is_shallow

from .ab_repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "repo", tmp_path / "site")
    repository.top.mkdir()
    repository.git("init", "-q", "-b", "main")
    return repository


def texts(repository: Repository, where: str = "kept") -> list[tuple[str, str]]:
    return [(one.path, one.data.decode()) for one in file_versions(repository.top / where, ".json")]


def test_versions_are_oldest_first_and_also_of_what_is_gone(repository: Repository) -> None:
    first = repository.commit({"kept/m/a b.json": "1", "other.json": "x", "kept/note.md": "x"})
    repository.commit({"kept/m/a b.json": "2"})
    repository.commit({"kept/m/ä\n.json": "3"})
    repository.git("mv", "kept/m/a b.json", "kept/m/moved.json")
    repository.git("commit", "-qm", "move")
    repository.git("rm", "-q", "-r", "kept")
    repository.git("commit", "-qm", "remove")

    assert not (repository.top / "kept").exists()
    assert texts(repository) == [
        ("kept/m/a b.json", "1"),
        ("kept/m/a b.json", "2"),
        ("kept/m/ä\n.json", "3"),
        ("kept/m/moved.json", "2"),
    ]
    assert file_versions(repository.top / "kept", ".json")[0].commit == first


def test_what_a_merge_made_is_a_version_and_none_comes_twice(repository: Repository) -> None:
    repository.commit({"kept/a.json": "1"})
    repository.git("checkout", "-qb", "side")
    repository.commit({"kept/a.json": "side"})
    repository.git("checkout", "-q", "main")
    repository.commit({"kept/a.json": "main"})
    repository.git("merge", "-q", "-s", "ours", "--no-commit", "side")
    repository.commit({"kept/a.json": "merged"})
    repository.commit({"kept/a.json": "1"})

    assert sorted(text for _, text in texts(repository)) == ["1", "main", "merged", "side"]
    assert texts(repository)[-1] == ("kept/a.json", "merged")


def test_uncommitted_and_unborn(repository: Repository) -> None:
    repository.write({"kept/a.json": "1"})

    assert texts(repository) == []


def test_a_shallow_clone_is_told(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"kept/a.json": "1"})
    repository.commit({"kept/a.json": "2"})
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", repository.top.as_uri(), str(tmp_path / "clone")],
        check=True,
        capture_output=True,
    )

    assert not is_shallow(repository.top / "kept")
    assert is_shallow(tmp_path / "clone")
    assert [one.data for one in file_versions(tmp_path / "clone/kept", ".json")] == [b"2"]


def test_outside_a_repository(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="not a git repository"):
        file_versions(tmp_path / "kept", ".json")
