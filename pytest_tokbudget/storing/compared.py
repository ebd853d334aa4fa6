"""Files that hold evidence, whichever kind they are of, for ``tokbudget diff``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..analysis.evidence_diff import evidence_of_result
from ..errors import UnreadableError
from ..records.baseline import Baseline
from ..records.evidence import Evidence
from ..records.result import RunResult
from ..records.run import RunRecord
from .codec import decode

EXPECTED = "a run.json, a run record (.tokbudget/runs/*.json) or a baseline"
_AGAIN = "measure again with --tokbudget-evidence always"


@dataclass(frozen=True)
class Side:
    """One side: ``title`` says what the file is, ``nodeid`` the test that was measured."""

    path: Path
    title: str
    nodeid: str
    evidence: Evidence


def load_side(path: Path, nodeid: str | None = None) -> Side:
    """Read the evidence of one test from ``path``; ``nodeid`` picks it where there are several.

    Raises UnreadableError, which says what the file is and what would be right, or
    NewerSchemaError.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(
            f"{path}: cannot be read ({error.strerror}); name {EXPECTED}"
        ) from None
    side = _side(path, data, nodeid)
    if nodeid is not None and side.nodeid != nodeid:
        raise UnreadableError(
            f"{path}: {side.title} of {side.nodeid}, not of {nodeid}; "
            "name a file of that test, or leave out --test"
        )
    return side


def _side(path: Path, data: bytes, nodeid: str | None) -> Side:
    keys = _keys(data)
    if "anchor" in keys:
        baseline = decode(data, Baseline, path=path, what_next=f"name {EXPECTED}")
        title = f"baseline of {baseline.log[-1].date}" if baseline.log else "baseline"
        again = "refresh it with --tokbudget-evidence always"
        return _with(path, title, baseline.workload.nodeid, baseline.reference, again)
    if "passes" in keys:
        run = decode(data, RunRecord, path=path, what_next=f"name {EXPECTED}")
        return _with(path, "run record", run.workload.nodeid, run.evidence, _AGAIN)
    result = decode(data, RunResult, path=path, what_next=f"name {EXPECTED}")
    return _of_run(path, result, nodeid)


def _keys(data: bytes) -> set[str]:
    """Top-level keys; none of what is no JSON, of which the decoder says what is wrong."""
    try:
        return set(msgspec.json.decode(data, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return set()


def _of_run(path: Path, run: RunResult, nodeid: str | None) -> Side:
    title = f"run.json of {run.created}"
    measured = [one for one in run.tests if one.sessions is not None or one.findings is not None]
    found = [one for one in measured if nodeid in (None, one.nodeid)]
    if len(found) == 1:
        evidence = evidence_of_result(found[0])
        return _with(path, title, found[0].nodeid, evidence, _AGAIN)
    names = ", ".join(one.nodeid for one in measured) or "none"
    wanted = "one measured test" if nodeid is None else nodeid
    raise UnreadableError(
        f"{path}: {title}, expected {wanted}, found {names}; "
        + ("choose one with --test NODEID" if measured else "measure first (pytest --tokbudget)")
    )


def _with(path: Path, title: str, nodeid: str, evidence: Evidence | None, again: str) -> Side:
    if evidence is None:
        raise UnreadableError(f"{path}: {title}, without evidence to compare; {again}")
    return Side(path, title, nodeid, evidence)
