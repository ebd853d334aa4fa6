"""Proves, at the end of a session, that a worker of an A/B ran the code of its own tree."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import ModuleType

from ..records.launch import Trees
from .git import tracked_files
from .trees import in_tree

OWN = __name__.partition(".")[0]
_SOURCES = (".py", ".pyx")
_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_SIDES = {"head": "the tree under test", "ref": "the checkout of the ref"}


def prove(trees: Trees, maps: Path = Path("/proc/self/maps")) -> list[str]:
    """Return what this process ran that is not of its own tree, a sentence each; empty is proven.

    No module and no mapped library may come from the other tree, and every imported module whose
    name git tracks in either tree must come from this one: a plain install of the project would
    otherwise be compared with itself. Raises LaunchError where git cannot list a tree.
    """
    return [
        *_foreign_modules(trees),
        *_foreign_libraries(trees, maps),
        *_installed_modules(trees),
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


def _foreign_libraries(trees: Trees, maps: Path) -> list[str]:
    tree, called = _other(trees)
    libraries = set()
    for line in maps.read_text(errors="replace").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not fields[5].startswith("/"):
            continue
        path = fields[5].removesuffix(" (deleted)")
        is_library = "x" in fields[1] or ".so" in PurePosixPath(path).name
        if is_library and in_tree(path, tree, trees.kept):
            libraries.add(path)
    return [f"library {path} is mapped from {called}" for path in sorted(libraries)]


def _installed_modules(trees: Trees) -> list[str]:
    """Modules that git tracks and that came from neither tree."""
    own = trees.head if trees.side == "head" else trees.ref
    certain: dict[str, str] = {}
    possible: dict[str, str] = {}
    projects: set[str] = set()
    roots = _import_roots(trees)
    for tree in (trees.head, trees.ref):
        files = tracked_files(Path(tree))
        sure, perhaps = import_names(files, roots)
        certain |= sure
        possible |= perhaps
        projects |= _projects(Path(tree), files)
    found = []
    providers: Mapping[str, Sequence[str]] | None = None
    for name, module in _modules():
        file = _file_of(module)
        if file is None or in_tree(file, own, trees.kept) or _is_standard(name, file):
            continue
        tracked = certain.get(name)
        if tracked is None and name in possible:
            providers = providers or importlib.metadata.packages_distributions()
            made_by = {_normal(one) for one in providers.get(name.partition(".")[0], ())}
            tracked = possible[name] if made_by & projects else None
        if tracked is not None:
            found.append(
                f"module {name} came from {file}, not from {tracked} of {_SIDES[trees.side]}: is "
                "the project installed as a copy? install it editable (pip install -e .)"
            )
    return found


def _import_roots(trees: Trees) -> set[str]:
    """The directories of the trees that modules are imported from, relative to their tops."""
    roots = {".", "src"}
    for entry in sys.path:
        for tree in (trees.head, trees.ref):
            if entry.startswith(os.sep) and in_tree(entry, tree, trees.kept):
                roots.add(os.path.relpath(os.path.realpath(entry), tree))
    return roots


def import_names(
    files: Iterable[str], roots: Iterable[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names that ``files`` (relative, tracked) can be imported by, each with its file.

    First those below the deepest of ``roots`` that holds the file. Second those of packages that
    lie in no root but the top: named from the first directory without an ``__init__.py`` on, which
    is a guess (a package may be part of a namespace, or vendored).
    """
    files = list(files)
    packages = {str(PurePosixPath(one).parent) for one in files if one.endswith("/__init__.py")}
    deepest = sorted((PurePosixPath(one) for one in roots), key=lambda one: -len(one.parts))
    certain: dict[str, str] = {}
    possible: dict[str, str] = {}
    for file in files:
        path = PurePosixPath(file)
        if path.suffix not in _SOURCES:
            continue
        root = next(one for one in deepest if path.is_relative_to(one))
        name = _dotted(path.relative_to(root))
        if name:
            certain.setdefault(name, file)
        if root == PurePosixPath():
            guess = _dotted(path.relative_to(_package_root(path, packages)))
            if str(path.parent) in packages and guess and guess != name:
                possible.setdefault(guess, file)
    return certain, possible


def _package_root(path: PurePosixPath, packages: set[str]) -> PurePosixPath:
    root = path.parent
    while str(root) in packages:
        root = root.parent
    return root


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


def _projects(top: Path, files: Iterable[str]) -> set[str]:
    """The names of the distributions that the tree's own project files declare."""
    names: set[str] = set()
    for file in files:
        if PurePosixPath(file).name in _PROJECT_FILES:
            try:
                text = (top / file).read_text(errors="replace")
            except OSError:
                continue
            found = re.findall(r"^\s*name\s*=\s*[\"']?([\w.-]+)", text, re.MULTILINE)
            names.update(_normal(one) for one in found)
            names.update(_normal(one) for one in re.findall(r"name=[\"']([\w.-]+)", text))
    return names


def _normal(name: str) -> str:
    """A distribution's name as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", name).lower()
