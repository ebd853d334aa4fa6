"""Which commit is measured, and what differs from it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ..records.machine import Commit
from .imported import untracked_imports
from .version_file import only_names_a_version

_TIMEOUT_S = 30
_SOURCES = ("py", "pyx", "pxd", "pyi", "c", "cc", "cpp", "h", "hpp", "cu", "cuh")
"""Untracked files of these kinds count as changes: Python may import them, a build take them in."""

_OWN = ".tokbudget"

# Set by git for its hooks; they would point every command at another repository or index.
_HOOK_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
)


class _GitError(Exception):
    """A git command failed; the message is git's own."""


def read_commit(
    rootdir: Path,
    *,
    exclude: Sequence[Path] = (),
    modules: Mapping[str, ModuleType] | None = None,
) -> Commit:
    """Read the commit checked out at ``rootdir``, through the ``git`` command.

    In a submodule it is the submodule's. ``branch`` is None on a detached HEAD. ``dirty_paths`` are
    tracked files that differ from the commit (a changed submodule counts as one), and untracked
    sources; paths under ``exclude`` and in any ``.tokbudget`` directory are left out.
    ``untracked_modules`` are those of ``modules`` (name → module) that come from the repository and
    are neither tracked nor among the changes. Without git, a repository or a commit, ``sha`` is
    None and ``reason`` says why; never raises.
    """
    try:
        top = Path(_git(rootdir, "rev-parse", "--show-toplevel").rstrip("\n"))
        sha = _git(top, "rev-parse", "--verify", "--end-of-options", "HEAD").strip()
        changed = [one for one in _dirty(top) if not _left_out(one, top, exclude)]
        ignored = [] if modules is None else _ignored(top, changed, modules)
    except _GitError as error:
        return Commit(reason=str(error))
    return Commit(sha=sha, branch=_branch(top), dirty_paths=changed, untracked_modules=ignored)


def _git(directory: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    # No lock: a measured checkout may be in use by the person's own git at the same time.
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise _GitError("the git command was not found") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise _GitError(f"git {arguments[0]} did not run: {error}") from None
    if done.returncode != 0:
        message = os.fsdecode(done.stderr).strip().splitlines()
        raise _GitError(message[0] if message else f"git {arguments[0]} exited {done.returncode}")
    return os.fsdecode(done.stdout)


def _branch(top: Path) -> str | None:
    try:
        return _git(top, "symbolic-ref", "--short", "--quiet", "HEAD").strip()
    except _GitError:
        return None


def _dirty(top: Path) -> list[str]:
    changed = _git(
        top,
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--ignore-submodules=untracked",
        "HEAD",
    )
    untracked = _git(
        top,
        "ls-files",
        "--others",
        "--exclude-standard",
        "-z",
        "--",
        *(f"*.{suffix}" for suffix in _SOURCES),
    )
    return sorted({one for one in (changed + untracked).split("\0") if one})


def _ignored(top: Path, changed: Sequence[str], modules: Mapping[str, ModuleType]) -> list[str]:
    """What was imported and is told neither by the commit nor by the changes.

    In submodules, too; their untracked files are no changes, but are code all the same.
    """
    tracked = _git(top, "ls-files", "--recurse-submodules", "-z").split("\0")
    found = untracked_imports(top, [*tracked, *changed], modules)
    return [one for one in found if not only_names_a_version(top / one)]


def _left_out(path: str, top: Path, exclude: Sequence[Path]) -> bool:
    # git shows the top level with symbolic links followed, so the others have to be as well.
    return _OWN in Path(path).parts or any(
        (top / path).is_relative_to(directory.resolve()) for directory in exclude
    )
