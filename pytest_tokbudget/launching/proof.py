"""Proves, at the end of a session, that a worker of an A/B ran the code of its own tree."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType

from ..records.launch import Trees
from .copies import Copies
from .git import tracked_files
from .trees import in_tree

OWN = __name__.partition(".")[0]
_SOURCES = (".py", ".pyx")
_SIDES = {"head": "the tree under test", "ref": "the checkout of the ref"}


def prove(trees: Trees, maps: Path = Path("/proc/self/maps")) -> list[str]:
    """Return what this process ran that is not of its own tree, a sentence each; empty is proven.

    No module and no mapped library may come from the other tree, none from an installed copy of
    either tree's project, and every imported module whose name git tracks in either tree must come
    from this one: a plain install would otherwise be compared with itself. Raises
    LaunchError where git cannot list a tree.
    """
    libraries = _libraries(maps)
    return [
        *_foreign_modules(trees),
        *_foreign_libraries(trees, libraries),
        *_installed(trees, libraries),
    ]


def _other(trees: Trees) -> tuple[str, str]:
    """The other side's tree, and what it is called."""
    if trees.side == "head":
        return trees.ref, _SIDES["ref"]
    return trees.head, _SIDES["head"]


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for name, module in list(sys.modules.items()):
        own = name == OWN or name.startswith(OWN + ".")
        if isinstance(module, ModuleType) and not own and name != "__main__":
            yield name, module


def _file_of(module: ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


def _paths_of(module: ModuleType) -> list[str]:
    file = _file_of(module)
    try:
        portions = [str(one) for one in getattr(module, "__path__", None) or ()]
    except Exception:  # noqa: BLE001 - modules may be anything, lazy proxies too
        portions = []
    return ([file] if file else []) + portions


def _foreign_modules(trees: Trees) -> list[str]:
    tree, called = _other(trees)
    found = []
    for name, module in _modules():
        wrong = [one for one in _paths_of(module) if in_tree(one, tree, trees.kept)]
        if wrong:
            found.append(f"module {name} came from {called}: {wrong[0]}")
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


def _installed(trees: Trees, libraries: list[str]) -> list[str]:
    """Modules and libraries of this tree's project that came from neither tree."""
    own = trees.head if trees.side == "head" else trees.ref
    tracked = {tree: tracked_files(Path(tree)) for tree in (trees.head, trees.ref)}
    roots = _import_roots(trees)
    names: dict[str, str] = {}
    for files in tracked.values():
        names |= import_names(files, roots)
    copies = list(Copies(trees, tracked).among(importlib.metadata.distributions()))
    found = []
    files_of_modules = set()
    for name, module in _modules():
        file = _file_of(module)
        if file is None or in_tree(file, own, trees.kept) or _is_standard(name, file):
            continue
        files_of_modules.add(os.path.realpath(file))
        copy = next((one for one in copies if one.holds(file)), None)
        if copy is not None:
            found.append(f"module {name} came from {file} of {copy.told()}")
        elif name in names:
            found.append(
                f"module {name} came from {file}, not from {names[name]} of {_SIDES[trees.side]}: "
                "is the project installed as a copy? install it editable (pip install -e .)"
            )
    for path in libraries:
        copy = next((one for one in copies if one.holds(path)), None)
        if copy is not None and path not in files_of_modules and not in_tree(path, own, trees.kept):
            found.append(f"library {path} is mapped from {copy.told()}")
    return found


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
