"""Checkouts of a ref: found, made, removed, also after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_tokbudget.errors import LaunchError, UsageError
from pytest_tokbudget.launching.trees import map_text, to_ref, trees_of
from pytest_tokbudget.launching.worktree import (
    PREFIX,
    build,
    overlaid,
    remove_stale,
    resolve_ref,
    worktree_at,
)

from .ab_repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository of two commits."""
    repository = Repository(tmp_path / "repo", tmp_path / "site")
    repository.top.mkdir()
    repository.git("init", "-q")
    repository.commit({"a.py": "ref", "test_a.py": "ref"})
    repository.commit({"a.py": "head", "tests/test_new.py": "head"})
    return repository


def checkouts(repository: Repository) -> list[str]:
    return [one for one in repository.git("worktree", "list").splitlines() if PREFIX in one]


def test_a_ref_is_checked_out_and_gone_afterwards(repository: Repository) -> None:
    with worktree_at(repository.ref()) as path:
        assert (path / "a.py").read_text() == "ref"
        assert len(checkouts(repository)) == 1

    assert not path.exists()
    assert checkouts(repository) == []
    assert not (repository.top / ".git/worktrees").exists()


def test_it_is_gone_after_an_exception(repository: Repository) -> None:
    with pytest.raises(ZeroDivisionError), worktree_at(repository.ref()) as path:
        raise ZeroDivisionError

    assert not path.exists()
    assert checkouts(repository) == []


def test_hooks_of_the_repository_do_not_run(repository: Repository) -> None:
    hook = repository.top / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)

    with worktree_at(repository.ref()) as path:
        assert not (path / "hooked").exists()


@pytest.mark.parametrize("directory_left", [True, False])
def test_what_a_killed_process_left_is_removed_next_time(
    repository: Repository, directory_left: bool
) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from pytest_tokbudget.launching.worktree import resolve_ref, worktree_at\n"
        "with worktree_at(resolve_ref(Path(sys.argv[1]), 'HEAD~1')) as path:\n"
        "    print(path, flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(repository.top)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        assert remove_stale(repository.top) == []
        process.send_signal(signal.SIGKILL)
    assert path.exists()
    if not directory_left:
        subprocess.run(["rm", "-r", str(path)], check=True)

    with worktree_at(repository.ref()):
        assert len(checkouts(repository)) == 1

    assert not path.exists()
    assert checkouts(repository) == []


def test_other_worktrees_are_left_alone(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", "--detach", str(tmp_path / "mine"))
    (tmp_path / "mine").rename(tmp_path / "away")

    with worktree_at(repository.ref()):
        pass

    assert str(tmp_path / "mine") in repository.git("worktree", "list")


@pytest.mark.parametrize("name", ["no-such-branch", "", "  ", "--help", "HEAD:a.py"])
def test_an_unknown_ref_is_a_usage_error(repository: Repository, name: str) -> None:
    with pytest.raises(UsageError, match="--tokbudget-against"):
        resolve_ref(repository.top, name)


def test_outside_git_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git repository"):
        resolve_ref(tmp_path, "HEAD")


def test_a_ref_is_shown_with_its_commit(repository: Repository) -> None:
    sha = repository.git("rev-parse", "HEAD~1").strip()

    assert str(repository.ref("HEAD~1")) == f"HEAD~1 ({sha[:10]})"
    assert str(repository.ref(sha[:8])) == sha[:10]


def test_submodules_are_named(repository: Repository, tmp_path: Path) -> None:
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository.top), "sub"
    )
    repository.commit({})

    assert repository.ref("HEAD").submodules == ("sub",)


def test_a_build_command_runs_in_the_checkout_and_knows_head(repository: Repository) -> None:
    with worktree_at(repository.ref()) as path:
        build(path, 'cp "$TOKBUDGET_HEAD/a.py" built.py', repository.top)
        assert (path / "built.py").read_text() == "head"
        with pytest.raises(LaunchError, match=r"(?s)exit status 3.*what went wrong"):
            build(path, "echo what went wrong; exit 3", repository.top)


def test_files_of_head_are_there_for_a_while(repository: Repository) -> None:
    files = [repository.top / "tests/test_new.py", repository.top / "a.py"]
    with worktree_at(repository.ref()) as path:
        with overlaid(path, repository.top, files):
            assert (path / "tests/test_new.py").read_text() == "head"
            assert (path / "a.py").read_text() == "head"
        assert not (path / "tests/test_new.py").exists()
        assert (path / "a.py").read_text() == "ref"


def test_paths_and_arguments_are_mapped(repository: Repository, tmp_path: Path) -> None:
    trees = trees_of(repository.top, tmp_path / "ref", "ref")
    head, ref = trees.head, trees.ref
    site = f"{head}/.venv/lib/python3/site-packages"

    assert to_ref(f"{head}/a/b.py", trees) == f"{ref}/a/b.py"
    assert to_ref(head, trees) == ref
    assert to_ref(f"{head}-other/a.py", trees) == f"{head}-other/a.py"
    assert to_ref(f"{site}/numpy", trees) == f"{site}/numpy"
    assert to_ref("a/b.py", trees) == "a/b.py"
    assert map_text(f"--rootdir={head}", trees) == f"--rootdir={ref}"
    assert map_text(f"{head}/t.py::test_a[{head}]", trees) == f"{ref}/t.py::test_a[{ref}]"
    assert map_text(f"{head}-other/a {head}/b", trees) == f"{head}-other/a {ref}/b"
    assert map_text(f"x{head}/a", trees) == f"x{head}/a"


def test_a_link_into_the_tree_is_of_the_tree(repository: Repository, tmp_path: Path) -> None:
    trees = trees_of(repository.top, tmp_path / "ref", "ref")
    link = tmp_path / "link"
    link.symlink_to(repository.top)

    assert to_ref(f"{link}/a.py", trees) == f"{trees.ref}/a.py"
    assert os.path.realpath(repository.top) == trees.head
