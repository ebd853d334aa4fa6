"""Whose code a worker of an A/B runs: turned to its own tree at the start, proven at the end.

Imported by every worker before pytest: nothing heavy here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import LaunchError
from ..launching.spec_file import SessionFiles
from ..records.launch import Trees, WorkerSpec

if TYPE_CHECKING:
    from ..launching.proof import Proof

SIDES = {"head": "the tree under test", "ref": "the ref"}


def prepare(spec: WorkerSpec) -> Callable[[], list[str]]:
    """Redirect this process where ``spec`` says so; return what tells why nothing is proven.

    The returned function gives no line where the worker ran its own tree's code, or is of no A/B.
    """
    trees = spec.trees
    if trees is None:
        return list
    from ..launching.proof import Proof
    from ..launching.witness import Witness

    witness = Witness(SessionFiles.of(spec).forked)
    passed_on: list[str] = []
    if trees.side == "ref":
        from ..launching.redirect import install

        passed_on = install(trees, witness.fault)
    try:
        proof = Proof(trees, witness, passed_on)
    except LaunchError as error:
        reason = str(error)
        return lambda: _told(trees, [reason])
    witness.install()
    return lambda: _unproven(trees, proof)


def _unproven(trees: Trees, proof: Proof) -> list[str]:
    try:
        return _told(trees, proof.faults())
    except LaunchError as error:
        return _told(trees, [str(error)])


def _told(trees: Trees, found: list[str]) -> list[str]:
    if not found:
        return []
    shown = [f"  - {one}" for one in found[:8]]
    more = [f"  - and {len(found) - 8} more"] if len(found) > 8 else []
    headline = (
        f"the A/B is worth nothing: the process that measures {SIDES[trees.side]} did not run "
        "that tree's code, or not all of it"
    )
    return ["\n".join([headline, *shown, *more])]
