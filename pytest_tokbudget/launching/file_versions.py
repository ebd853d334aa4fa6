"""Every version of the files of a directory that git has kept."""

from __future__ import annotations

import os
from pathlib import Path

from ..records.history import FileVersion
from .git import git

_HEADER = "\x01"


def file_versions(directory: Path, suffix: str) -> list[FileVersion]:
    """Return the committed versions of the files below ``directory`` that end in ``suffix``.

    Of the history of HEAD, oldest first; the directory need not exist any more. A version that two
    commits share is returned once a file. Raises LaunchError where there is no git repository.
    """
    standing = _standing(directory)
    top = git(standing, "rev-parse", "--show-toplevel").rstrip("\n")
    if not git(standing, "rev-list", "--max-count=1", "--all").strip():
        return []
    wanted = os.path.relpath(os.path.abspath(directory), standing)  # noqa: PTH100
    listed = git(
        standing,
        "log",
        "--topo-order",
        "--reverse",
        # Also what a merge made of a file.
        "-m",
        "--diff-filter=AMRT",
        "--name-only",
        "-z",
        f"--format={_HEADER}%H",
        "--",
        wanted,
    )
    versions: dict[tuple[str, bytes], FileVersion] = {}
    for commit, path in _commits_and_paths(listed):
        if path.endswith(suffix):
            data = os.fsencode(git(Path(top), "show", f"{commit}:{path}"))
            versions.setdefault((path, data), FileVersion(path=path, commit=commit, data=data))
    return list(versions.values())


def is_shallow(directory: Path) -> bool:
    """Whether the clone at ``directory`` holds only the newest commits. Raises LaunchError."""
    found = git(_standing(directory), "rev-parse", "--is-shallow-repository")
    return found.strip() == "true"


def _standing(directory: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    absolute = Path(os.path.abspath(directory))  # noqa: PTH100 - links stay what git knows
    return next(one for one in (absolute, *absolute.parents) if one.is_dir())


def _commits_and_paths(listed: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    commit = ""
    for piece in listed.split("\0"):
        text = piece.lstrip("\n")
        if text.startswith(_HEADER):
            commit = text[1:].split()[0]
        elif text:
            found.append((commit, text))
    return found
