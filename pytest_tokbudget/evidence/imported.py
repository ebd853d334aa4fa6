"""The Python files that a process has imported from the repository under test."""

from __future__ import annotations

import site
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType

_SOURCES = (".py", ".pyc")
_INSTALLED = {"site-packages", "dist-packages"}


def untracked_imports(
    top: Path, tracked: Iterable[str], modules: Mapping[str, ModuleType]
) -> list[str]:
    """Return what ``modules`` were imported from below ``top`` and is not ``tracked``, sorted.

    Paths are relative to ``top`` (links followed). Python files only: a compiled extension is a
    product of sources. Left out are what is installed (a ``site-packages``, or an environment
    inside the tree), and what a library writes and imports under its own name (a compiler's cache).
    A link counts as what it is, and as what it leads to: one of them has to be tracked.
    """
    known = set(tracked)
    # Thousands of modules lie in a few hundred directories.
    below = cache(partial(_directories_below, top, _environment(top)))
    found = set()
    for name, module in modules.items():
        root, file = _file_of(modules.get(name.partition(".")[0])), _file_of(module)
        if file is None or file.suffix not in _SOURCES:
            continue
        if root is not None and not _names_below(root, below):
            continue
        relative = _names_below(file, below)
        if relative and not any(_is_known(one, known) for one in relative):
            found.add(str(relative[0]))
    return sorted(found)


def _names_below(file: Path, below: Callable[[Path], tuple[Path, ...]]) -> list[Path]:
    """What ``file`` is called below the top: as it was imported, and with links followed."""
    names = [one / file.name for one in below(file.parent)]
    if file.is_symlink():
        real = file.resolve()
        names += [one / real.name for one in below(real.parent)]
    return names


def _directories_below(top: Path, installed: Sequence[Path], directory: Path) -> tuple[Path, ...]:
    # The tree itself may be known by another name than git's, which has its links followed.
    return tuple(
        one.relative_to(top)
        for one in dict.fromkeys((directory.resolve(), directory))
        if one.is_relative_to(top)
        and not any(one.is_relative_to(each) for each in installed)
        and not _INSTALLED & set(one.relative_to(top).parts)
    )


def _is_known(path: Path, tracked: set[str]) -> bool:
    """Whether ``path`` is tracked, or reached by a link that is."""
    return any(str(one) in tracked for one in (path, *path.parents))


def _file_of(module: object) -> Path | None:
    try:
        file = getattr(module, "__file__", None)
    except Exception:  # noqa: BLE001 - modules may be anything, lazy proxies too
        file = None
    return Path(file).absolute() if isinstance(file, str) else None


def _environment(top: Path) -> list[Path]:
    """What is inside ``top`` of this interpreter and of what is installed for it."""
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    named = (*prefixes, *site.getsitepackages(), site.getusersitepackages())
    real = {Path(one).resolve() for one in named}
    return [one for one in real if one != top and one.is_relative_to(top)]
