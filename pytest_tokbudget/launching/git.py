"""Git, through its command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..errors import LaunchError

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


def git(directory: Path, *arguments: str) -> str:
    """Run ``git`` in ``directory`` and return its output; raises LaunchError with git's message."""
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise LaunchError(f"the git command did not run: {error}") from None
    if done.returncode != 0:
        message = os.fsdecode(done.stderr).strip() or f"exit status {done.returncode}"
        raise LaunchError(f"git {arguments[0]} in {directory}: {message}")
    return os.fsdecode(done.stdout)


def tracked_files(top: Path) -> list[str]:
    """Return the files that git tracks in the tree at ``top``, relative to it."""
    return [name for name in git(top, "ls-files", "-z").split("\0") if name]
