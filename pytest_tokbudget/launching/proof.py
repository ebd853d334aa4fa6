"""Proves, at the end of a session, that a worker of an A/B ran the code of its own tree."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import NamedTuple

from ..records.launch import Trees
from .children import copies_run, heads_code_run, places_of
from .copies import Copies, Copy
from .git import tracked_files
from .opened import OpenedFiles
from .trees import in_tree
from .witness import Note, Witness, paths_of

OWN = __name__.partition(".")[0]
_SOURCES = (".py", ".pyx")
_SIDES = {"head": "the tree under test", "ref": "the checkout of the ref"}


class Proof:
    """Made when a worker begins, asked when it ends."""

    def __init__(self, trees: Trees, witness: Witness, passed_on: Collection[str] = ()) -> None:
        """Begin to watch the installed copies.

        ``passed_on`` are the directories of the ref that its children get by ``PYTHONPATH``. Raises
        LaunchError where git cannot list a tree.
        """
        self._trees, self._witness, self._passed_on = trees, witness, passed_on
        self._tracked = {tree: tracked_files(Path(tree)) for tree in (trees.head, trees.ref)}
        self._copies = Copies(trees, self._tracked)
        known = self._copies.among(importlib.metadata.distributions())
        self._opened = OpenedFiles(known, (trees.head, trees.ref), trees.kept)

    def faults(self, maps: Path = Path("/proc/self/maps")) -> list[str]:
        """Return what this process ran that is not of its own tree, a sentence each.

        Empty is proven: no module and no mapped library came from the other tree, none from an
        installed copy of either tree's project, every imported module whose name git tracks in
        either tree came from this one, and no child process ran such a copy; forked children are
        judged like this process. Raises LaunchError where git or the children's notes cannot be
        read.
        """
        notes = self._witness.notes()
        modules = [*_modules(), *(one for one in map(_of_child, notes) if one is not None)]
        libraries = sorted({*_libraries(maps), *(one.library for one in notes if one.library)})
        programs = [one.program for one in notes if one.program is not None]
        names = self._names()
        paths = list(dict.fromkeys([*sys.path, *places_of(programs)]))
        copies = list(self._copies.among(importlib.metadata.distributions(path=paths)))
        found = [
            *dict.fromkeys(one.fault for one in notes if one.fault),
            *_foreign_modules(self._trees, modules),
            *_foreign_libraries(self._trees, libraries),
        ]
        installed = _Installed(self._trees, names, copies)
        found += [*installed.modules(modules), *installed.libraries(libraries)]
        unseen = [one for one in copies if one not in installed.used]
        found += copies_run(self._trees, programs, unseen, self._opened)
        if self._trees.side == "ref" and self._passed_on:
            tops = {one.partition(".")[0] for one in names} - {OWN}
            found += heads_code_run(self._trees, programs, self._passed_on, tops)
        return found

    def _names(self) -> dict[str, str]:
        roots = _import_roots(self._trees)
        names: dict[str, str] = {}
        for files in self._tracked.values():
            names |= import_names(files, roots)
        return names


class _Module(NamedTuple):
    """A module's name and paths (its file first), and who imported it, ``""`` this process."""

    name: str
    file: str | None
    paths: list[str]
    by: str = ""

    def told(self) -> str:
        return f"module {self.name}{self.by}"


def _modules() -> Iterator[_Module]:
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and not _is_own(name):
            file = getattr(module, "__file__", None)
            yield _Module(name, file if isinstance(file, str) else None, paths_of(module))


def _of_child(note: Note) -> _Module | None:
    if not note.module or _is_own(note.module):
        return None
    file = note.paths[0] if note.paths else None
    return _Module(note.module, file, note.paths, " of a forked child")


def _is_own(name: str) -> bool:
    return name in ("__main__", OWN) or name.startswith(OWN + ".")


def _other(trees: Trees) -> tuple[str, str]:
    """The other side's tree, and what it is called."""
    if trees.side == "head":
        return trees.ref, _SIDES["ref"]
    return trees.head, _SIDES["head"]


def _foreign_modules(trees: Trees, modules: Iterable[_Module]) -> list[str]:
    tree, called = _other(trees)
    found = []
    for module in modules:
        wrong = [one for one in module.paths if in_tree(one, tree, trees.kept)]
        if wrong:
            found.append(f"{module.told()} came from {called}: {wrong[0]}")
    return found


def _libraries(maps: Path) -> list[str]:
    """The files that this process has mapped to run."""
    libraries = set()
    for line in maps.read_text(errors="replace").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not fields[5].startswith("/"):
            continue
        path = fields[5].removesuffix(" (deleted)")
        if "x" in fields[1] or ".so" in PurePosixPath(path).name:
            libraries.add(path)
    return sorted(libraries)


def _foreign_libraries(trees: Trees, libraries: list[str]) -> list[str]:
    tree, called = _other(trees)
    return [
        f"library {path} is mapped from {called}"
        for path in libraries
        if in_tree(path, tree, trees.kept)
    ]


class _Installed:
    """Finds what is of the project and of neither tree; ``used`` are the copies that were found."""

    def __init__(self, trees: Trees, names: dict[str, str], copies: Sequence[Copy]) -> None:
        self._trees, self._names, self._copies = trees, names, copies
        self._own = trees.head if trees.side == "head" else trees.ref
        self._files: set[str] = set()
        self.used: set[Copy] = set()

    def modules(self, modules: Iterable[_Module]) -> Iterator[str]:
        """Yield a sentence for each module."""
        for module in modules:
            file, name = module.file, module.name
            if file is None or self._is_right(file) or _is_standard(name, file):
                continue
            self._files.add(os.path.realpath(file))
            copy = self._copy_with(file)
            if copy is not None:
                yield f"{module.told()} came from {file} of {copy.told()}"
            elif name in self._names:
                yield (
                    f"{module.told()} came from {file}, not from {self._names[name]} of "
                    f"{_SIDES[self._trees.side]}: is the project installed as a copy? install it "
                    "editable (pip install -e .)"
                )

    def libraries(self, libraries: Iterable[str]) -> Iterator[str]:
        """Yield a sentence for each library that is no module's; ask for the modules first."""
        for path in libraries:
            copy = self._copy_with(path)
            if copy is not None and path not in self._files and not self._is_right(path):
                yield f"library {path} is mapped from {copy.told()}"

    def _is_right(self, path: str) -> bool:
        return in_tree(path, self._own, self._trees.kept)

    def _copy_with(self, path: str) -> Copy | None:
        copy = next((one for one in self._copies if one.holds(path)), None)
        if copy is not None:
            self.used.add(copy)
        return copy


def _import_roots(trees: Trees) -> set[str]:
    """The directories of the trees that modules are imported from, relative to their tops."""
    roots = {".", "src"}
    for entry in sys.path:
        for tree in (trees.head, trees.ref):
            if entry.startswith(os.sep) and in_tree(entry, tree, trees.kept):
                roots.add(os.path.relpath(os.path.realpath(entry), tree))
    return roots


def import_names(files: Iterable[str], roots: Iterable[str]) -> dict[str, str]:
    """Return the names that ``files`` (relative, tracked) can be imported by, each with its file.

    They are those below the deepest of ``roots`` that holds the file.
    """
    deepest = sorted((PurePosixPath(one) for one in roots), key=lambda one: -len(one.parts))
    names: dict[str, str] = {}
    for file in files:
        path = PurePosixPath(file)
        if path.suffix not in _SOURCES:
            continue
        root = next(one for one in deepest if path.is_relative_to(one))
        name = _dotted(path.relative_to(root))
        if name:
            names.setdefault(name, file)
    return names


def _dotted(path: PurePosixPath) -> str:
    """``pkg/sub/__init__.py`` → ``pkg.sub``; ``""`` for what no import statement can name."""
    parts = [*path.parts[:-1], path.stem]
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if all(part.isidentifier() for part in parts) else ""


def _is_standard(name: str, file: str) -> bool:
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    below = any(in_tree(file, os.path.realpath(one)) for one in standard)
    return name.partition(".")[0] in sys.stdlib_module_names and below
