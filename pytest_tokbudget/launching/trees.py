"""Paths of the tree under test, and where the same things are in the ref's checkout."""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Iterable
from pathlib import Path

from ..records.launch import Trees, WorkerSpec

PACKAGE = Path(__file__).resolve().parents[1]
"""This package. Both sides measure with HEAD's, even where it is the repository under test."""


def trees_of(head: Path, ref: Path, side: str) -> Trees:
    """Return the two checkouts; what belongs to the environment is found in this process."""
    top = Path(os.path.realpath(head))
    environment = {
        sys.prefix,
        sys.exec_prefix,
        sys.base_prefix,
        sys.base_exec_prefix,
        *site.getsitepackages(),
        site.getusersitepackages(),
        str(PACKAGE),
    }
    kept = sorted({os.path.realpath(one) for one in environment})
    return Trees(
        head=str(top),
        ref=os.path.realpath(ref),
        side=side,
        kept=[one for one in kept if one != str(top) and Path(one).is_relative_to(top)],
    )


def is_below(path: str, directory: str) -> bool:
    """Return whether the real path ``path`` is ``directory`` or lies in it."""
    return path == directory or path.startswith(directory + os.sep)


def in_tree(path: str, tree: str, kept: Iterable[str] = ()) -> bool:
    """Return whether ``path``, links followed, is of ``tree`` and of no directory in ``kept``.

    What is installed in a ``site-packages`` inside the tree is not of the tree.
    """
    real = os.path.realpath(path)
    if not is_below(real, tree) or any(is_below(real, one) for one in kept):
        return False
    return not {"site-packages", "dist-packages"} & set(Path(real[len(tree) :]).parts)


def to_ref(path: str, trees: Trees) -> str:
    """Return where ``path`` is in the ref's checkout; what is not of HEAD's tree stays."""
    if not path.startswith(os.sep) or not in_tree(path, trees.head, trees.kept):
        return path
    return trees.ref + os.path.realpath(path)[len(trees.head) :]


def map_text(text: str, trees: Trees) -> str:
    """Return an argument or variable with every path of HEAD's tree in it replaced.

    A path is what begins with the tree's own and ends before a space, ``:``, ``=`` or ``,``.
    """
    return re.sub(
        rf"(?<![\w./-]){re.escape(trees.head)}(?:/[^\s:=,]*)?(?![\w.-])",
        lambda found: to_ref(found[0], trees),
        text,
    )


def spec_at_ref(spec: WorkerSpec, trees: Trees) -> dict[str, object]:
    """Return the fields of ``spec`` that differ for a worker at the ref.

    ``sys_path`` stays: the worker first imports this package by it, and maps it then. The rootdir
    is given: node ids are relative to it, and the ref's ini file may lie elsewhere.
    """
    rootdir = to_ref(spec.rootdir, trees)
    return {
        "trees": trees,
        "cwd": to_ref(spec.cwd, trees),
        "rootdir": rootdir,
        "args": [*(map_text(arg, trees) for arg in spec.args), f"--rootdir={rootdir}"],
        "argv": [map_text(arg, trees) for arg in spec.argv],
    }
