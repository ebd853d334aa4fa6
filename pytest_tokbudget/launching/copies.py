"""Installed copies of the trees' own code: what both sides of an A/B would run alike."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from ..records.launch import Trees
from .git import git
from .projects import declared_projects, normal_name
from .trees import in_tree, is_below


@dataclass(frozen=True)
class Origin:
    """Where a distribution was installed from, where it was not an index.

    ``path`` is a real path, ``""`` where it was none of this machine's.
    """

    path: str
    editable: bool


@dataclass(frozen=True)
class Copy:
    """A distribution that holds the trees' code outside of them, and why that is known."""

    name: str
    why: str
    remedy: str
    files: frozenset[str]
    directories: tuple[str, ...]

    def holds(self, path: str) -> bool:
        """Return whether the file at ``path`` belongs to the distribution."""
        # The installer may have put links to a cache of its own.
        spellings = (os.path.abspath(path), os.path.realpath(path))  # noqa: PTH100
        return any(one in self.files for one in spellings) or any(
            is_below(one, directory) or one.startswith(directory + ".")
            for one in spellings
            for directory in self.directories
        )

    def told(self) -> str:
        """Return which distribution it is, why it is refused and what to do."""
        return (
            f"the distribution {self.name}, which {self.why}: both sides would run this one copy; "
            f"{self.remedy}"
        )


def origin_of(distribution: Distribution) -> Origin | None:
    """Return what ``direct_url.json`` (PEP 610) says; None where there is none to be read."""
    try:
        recorded = json.loads(distribution.read_text("direct_url.json") or "null")
        url = urlsplit(recorded["url"].removeprefix("git+"))
        editable = recorded.get("dir_info", {}).get("editable", False)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    path = os.path.realpath(unquote(url.path)) if url.scheme == "file" else ""
    return Origin(path, editable is True)


class Copies:
    """Tells which distributions are copies of what git tracks in the two trees."""

    def __init__(self, trees: Trees, tracked: dict[str, list[str]]) -> None:
        """``tracked`` are the tracked files, relative, by the path of their tree."""
        self.trees = trees
        self.tracked = tracked
        # A name may be declared in one tree only, or by another file.
        self._projects = {
            (name, file)
            for tree, files in tracked.items()
            for name, file in declared_projects(Path(tree), files).items()
        }

    def among(self, distributions: Iterable[Distribution]) -> Iterator[Copy]:
        """Yield the copies; raises LaunchError where git cannot compare the trees."""
        for distribution in distributions:
            text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
            found = re.search(r"^Name:\s*(\S+)", text, re.MULTILINE)
            name = found[1] if found else ""
            origin = origin_of(distribution)
            place = self._place(origin.path) if origin and origin.path else None
            why = f"was installed from {place}" if place is not None else None
            why = why or self._why_by_name(normal_name(name), distribution, origin)
            placed = origin is not None and not origin.editable
            if why is None and placed and self._resembles(distribution, "."):
                why = "holds the files of the checkout"
            if why is not None:
                yield self._copy(name, why, distribution, origin, place)

    def _place(self, path: str) -> str | None:
        """Return ``path``, where it is one of a tree and git tracks something there."""
        for tree, files in self.tracked.items():
            if not in_tree(path, tree, self.trees.kept):
                continue
            place = os.path.relpath(path, tree)
            # A submodule is tracked as one name, whatever lies below it.
            if any(
                place == "." or is_below(file, place) or is_below(place, file) for file in files
            ):
                return path
        return None

    def _why_by_name(
        self, name: str, distribution: Distribution, origin: Origin | None
    ) -> str | None:
        for project, file in sorted(self._projects):
            if project != name:
                continue
            directory = str(PurePosixPath(file).parent)
            # From an index, under the name of a project somewhere below the top: a member of the
            # repository, or a dependency that it holds a copy of. The second is no fault while
            # nothing in it changed: neither side's code is then replaced by the other's.
            if (
                directory == "."
                or origin is not None
                or (self._resembles(distribution, directory) and self._changed_below(directory))
            ):
                return f"is what {file} declares"
        return None

    def _changed_below(self, directory: str) -> bool:
        return any(is_below(one, directory) for one in self._changed)

    @cached_property
    def _changed(self) -> list[str]:
        """The tracked files that differ between the trees."""
        commit = git(Path(self.trees.ref), "rev-parse", "HEAD").strip()
        listed = git(Path(self.trees.head), "diff", "--name-only", "--no-renames", "-z", commit)
        return [one for one in listed.split("\0") if one]

    def _resembles(self, distribution: Distribution, directory: str) -> bool:
        """Return whether half of its Python files are tracked below ``directory``.

        By the path they are imported by, unless that lies in another package (a vendored copy is
        imported by another name), or by their content. Nothing speaks against it where it has none.
        """
        sources = [one for one in distribution.files or () if one.suffix == ".py"]
        below = {
            tree: [one for one in files if directory == "." or is_below(one, directory)]
            for tree, files in self.tracked.items()
        }
        paths = {one for files in below.values() for one in _import_paths(files)}
        digests = _digests(below, {one.size for one in sources if one.size})
        same = sum(
            str(one) in paths or (one.hash is not None and one.hash.value in digests)
            for one in sources
        )
        return 2 * same >= len(sources) and (bool(sources) or directory != ".")

    def _copy(
        self,
        name: str,
        why: str,
        distribution: Distribution,
        origin: Origin | None,
        place: str | None,
    ) -> Copy:
        base = str(distribution.locate_file(""))
        # An editable install's finder is no code of the tree, and not every installer says that
        # the install is editable.
        names = [str(one) for one in _code_files(distribution) if "editable" not in one.name]
        directories = []
        remedy = f"install it editable (pip install -e {place or 'DIRECTORY'})"
        if place is not None and os.path.isfile(place):  # noqa: PTH113
            remedy = "install it from outside of the tree"
        if origin is not None and origin.editable:
            # Of an editable install that is in the tree only what was built stands elsewhere.
            names = [one for one in names if one.endswith(tuple(EXTENSION_SUFFIXES))]
            if place is None and origin.path:
                directories.append(origin.path)
            elif place is not None:
                remedy = "build it inside the tree"
        elif distribution.read_text("RECORD") is None:
            # Old eggs and packages of Linux distributions record no files.
            tops = (distribution.read_text("top_level.txt") or name.replace("-", "_")).split()
            directories += [str(distribution.locate_file(one)) for one in tops]
        files = {
            os.path.normpath(os.path.join(root, one))  # noqa: PTH118
            for root in (base, os.path.realpath(base))
            for one in names
        }
        return Copy(name, why, remedy, frozenset(files), tuple(directories))


def _code_files(distribution: Distribution) -> Iterator[PurePosixPath]:
    """The files without its metadata and the scripts that installers write for entry points."""
    groups = ("console_scripts", "gui_scripts")
    stubs = {one.name for one in distribution.entry_points if one.group in groups}
    for file in distribution.files or ():
        stub = file.parent.name in ("bin", "Scripts") and file.name in stubs
        if not stub and file.parent.suffix not in (".dist-info", ".egg-info"):
            yield file


def _import_paths(files: Iterable[str]) -> Iterator[str]:
    """Every path that one of ``files`` may be imported by, from whatever directory."""
    packages = {str(PurePosixPath(one).parent) for one in files if one.endswith("/__init__.py")}
    for file in files:
        parts = PurePosixPath(file).parts
        for depth in range(len(parts)):
            if "/".join(parts[:depth]) not in packages:
                yield "/".join(parts[depth:])


def _digests(files: dict[str, list[str]], sizes: set[int]) -> set[str]:
    """SHA-256 of the files of those sizes (bytes) as a wheel's RECORD writes it (PEP 376, 427)."""
    digests = set()
    for tree, names in files.items():
        for name in names:
            path = Path(tree, name)
            if path.suffix == ".py" and path.is_file() and path.stat().st_size in sizes:
                digest = hashlib.sha256(path.read_bytes()).digest()
                digests.add(base64.urlsafe_b64encode(digest).rstrip(b"=").decode())
    return digests
