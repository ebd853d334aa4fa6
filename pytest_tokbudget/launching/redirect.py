"""Makes a worker at a git ref import the ref's code, however the project is installed.

An editable install names HEAD's tree: in a ``.pth`` line (hatchling and others), in a finder of its
own on ``sys.meta_path`` (setuptools), as portions of a namespace package. ``PYTHONPATH`` alone
outranks only the first. So every module that anybody finds in HEAD's tree is loaded from the same
place in the ref's; one that is not there does not exist. What an import must not do here it
reports, since the code under test may catch the ImportError and go on by another way: that would be
measured as if it were the ref's.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, MutableMapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from types import ModuleType

from ..records.launch import Trees
from .trees import in_tree, map_text, to_ref

OWN = __name__.partition(".")[0]


class Redirector:
    """A finder for the front of ``sys.meta_path``."""

    def __init__(
        self, trees: Trees, fault: Callable[[str], None], lost: Sequence[str] = ()
    ) -> None:
        """``fault`` is told what the ref's tree lacked.

        ``lost`` are entries of ``sys.path`` in HEAD's tree that the ref's has no match for.
        """
        self.trees = trees
        self._fault = fault
        self._lost = list(lost)
        self._busy = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find ``name`` as all other finders would, then move it to the ref's tree."""
        if name == OWN or name.startswith(OWN + "."):
            return None
        busy: set[str] = self._busy.__dict__.setdefault("names", set())
        if name in busy:
            # Another finder that asks all finders, us among them.
            return None
        busy.add(name)
        try:
            spec = self._found_by_others(name, path, target)
            if spec is None and path is None and self._lost:
                spec = PathFinder.find_spec(name, self._lost)
            if spec is None:
                self._look_for_unbuilt(name, path)
                return None
            return self._moved(spec)
        finally:
            busy.discard(name)

    def _found_by_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _of_head(self, path: str) -> bool:
        return in_tree(path, self.trees.head, self.trees.kept)

    def _moved(self, spec: ModuleSpec) -> ModuleSpec:
        """Return ``spec`` at the ref, or ``spec`` itself where it is not of HEAD's tree."""
        locations = spec.submodule_search_locations
        if not spec.has_location or spec.origin is None:
            return self._moved_namespace(spec)
        if not self._of_head(spec.origin):
            return spec
        origin = to_ref(spec.origin, self.trees)
        if not os.path.exists(origin):  # noqa: PTH110 - run at every import
            return self._elsewhere(spec)
        packages = None if locations is None else self._package_paths(spec.origin, locations)
        moved = spec_from_file_location(spec.name, origin, submodule_search_locations=packages)
        if moved is None:
            raise self._absent(spec)
        return moved

    def _package_paths(self, origin: str, locations: Sequence[str]) -> list[str]:
        """Where a package's modules are: beside its file, which may be a link to elsewhere."""
        own = os.path.dirname(origin)  # noqa: PTH120
        there = os.path.dirname(to_ref(origin, self.trees))  # noqa: PTH120
        return [there if one == own else to_ref(one, self.trees) for one in locations]

    def _moved_namespace(self, spec: ModuleSpec) -> ModuleSpec:
        locations = spec.submodule_search_locations
        if locations is None or not any(self._of_head(one) for one in locations):
            return spec
        portions = list(dict.fromkeys(to_ref(one, self.trees) for one in locations))
        present = [one for one in portions if os.path.isdir(one)]  # noqa: PTH112
        if not present:
            return self._elsewhere(spec)
        moved = ModuleSpec(spec.name, None, is_package=True)
        moved.submodule_search_locations = present
        return moved

    def _elsewhere(self, spec: ModuleSpec) -> ModuleSpec:
        """Return a top-level module that lies elsewhere at the ref (``src/`` came or went)."""
        if "." not in spec.name:
            ref = self.trees.ref
            found = PathFinder.find_spec(spec.name, [os.path.join(ref, "src"), ref])  # noqa: PTH118
            if found is not None and found.has_location:
                return found
        raise self._absent(spec)

    def _absent(self, spec: ModuleSpec) -> ImportError:
        origin = spec.origin or ", ".join(spec.submodule_search_locations or ())
        text = f"{spec.name} is {origin} in the tree under test; it does not exist at the ref"
        if origin.endswith(tuple(EXTENSION_SUFFIXES)):
            text = self._unbuilt(spec.name, origin)
        return ModuleNotFoundError(text, name=spec.name)

    def _look_for_unbuilt(self, name: str, path: Sequence[str] | None) -> None:
        """Raise where HEAD's tree holds a built extension of this name."""
        ref = self.trees.ref
        searched = [one for one in (sys.path if path is None else path) if in_tree(one, ref)]
        heads = [self.trees.head + os.path.realpath(one)[len(ref) :] for one in searched]
        found = PathFinder.find_spec(name, heads) if heads else None
        origin = None if found is None else found.origin
        if origin is not None and origin.endswith(tuple(EXTENSION_SUFFIXES)):
            raise ModuleNotFoundError(self._unbuilt(name, origin), name=name)

    def _unbuilt(self, name: str, origin: str) -> str:
        text = (
            f"the extension {name} is built in the tree under test ({origin}) and not at the ref: "
            "give the command that builds it in the ini option tokbudget_against_build, for "
            "example: python setup.py build_ext --inplace"
        )
        self._fault(text)
        return text


def install(
    trees: Trees,
    fault: Callable[[str], None],
    environ: MutableMapping[str, str] = os.environ,
) -> list[str]:
    """Let this process, and those it starts, import the ref's code from now on.

    Call it in a worker at the ref, before the first import of what is measured. ``fault`` is told
    what the ref lacks. Returns the directories of the ref that ``PYTHONPATH`` passes on.
    """
    mapped = [(one, to_ref(one, trees)) for one in sys.path]
    lost = [one for one, there in mapped if one != there and not os.path.exists(there)]  # noqa: PTH110
    redirector = Redirector(trees, fault, lost)
    # multiprocessing gives a spawned child this sys.path, whatever PYTHONPATH says: without the
    # roots a finder of setuptools would find HEAD's tree in it.
    roots = _editable_roots(trees)
    sys.path[:] = list(dict.fromkeys([*(there for _, there in mapped), *roots]))
    sys.meta_path.insert(0, redirector)
    # A child has no finder of ours; these entries outrank both kinds of editable installs in it.
    inherited = environ.get("PYTHONPATH", "").split(os.pathsep)
    entries = [one for one in sys.path if one.startswith(trees.ref)]
    entries += [*roots, *(to_ref(one, trees) for one in inherited if one)]
    if lost:
        entries.insert(0, os.path.join(trees.ref, "src"))  # noqa: PTH118
    if entries:
        environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(entries))
    for variable in ("PYTEST_ADDOPTS", "PWD", "OLDPWD"):
        if variable in environ:
            environ[variable] = map_text(environ[variable], trees)
    return [one for one in dict.fromkeys(entries) if in_tree(one, trees.ref)]


def _editable_roots(trees: Trees) -> list[str]:
    """Return the directories, at the ref, of the packages that setuptools' finders name."""
    roots = []
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""))
        mapping = getattr(module, "MAPPING", None)
        if isinstance(mapping, dict):
            roots += [os.path.dirname(to_ref(str(one), trees)) for one in mapping.values()]  # noqa: PTH120
    return [one for one in roots if in_tree(one, trees.ref)]
