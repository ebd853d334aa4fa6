"""Whose code a worker of an A/B runs: turned to its own tree at the start, proven at the end.

Imported by every worker before pytest: nothing heavy here.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import LaunchError
from ..records.launch import Trees, WorkerSpec

SIDES = {"head": "the tree under test", "ref": "the ref"}


def prepare(spec: WorkerSpec) -> Callable[[], list[str]]:
    """Redirect this process where ``spec`` says so; return what tells why nothing is proven.

    The returned function gives no line where the worker ran its own tree's code, or is of no A/B.
    """
    trees = spec.trees
    if trees is None:
        return list
    faults: list[str] = []
    if trees.side == "ref":
        from ..launching.redirect import install

        faults = install(trees).faults
    return lambda: _unproven(trees, faults)


def _unproven(trees: Trees, faults: list[str]) -> list[str]:
    from ..launching.proof import prove

    try:
        found = [*faults, *prove(trees)]
    except LaunchError as error:
        found = [str(error)]
    if not found:
        return []
    shown = [f"  - {one}" for one in found[:8]]
    more = [f"  - and {len(found) - 8} more"] if len(found) > 8 else []
    headline = (
        f"the A/B is worth nothing: the process that measures {SIDES[trees.side]} did not run "
        "that tree's code, or not all of it"
    )
    return ["\n".join([headline, *shown, *more])]
