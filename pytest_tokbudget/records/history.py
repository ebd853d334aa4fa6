"""What is known of a workload over time."""

from __future__ import annotations

from .base import Record
from .baseline import RefreshEntry, StoredSession


class FileVersion(Record, frozen=True, kw_only=True):
    """One committed version of a file; ``path`` is relative to the git top level."""

    path: str
    commit: str
    data: bytes


class SeenSession(Record, frozen=True, kw_only=True):
    """One session and where it was found: ``"anchor"``, ``"appended"`` or ``"run"``."""

    session: StoredSession
    source: str


class WorkloadHistory(Record, frozen=True, kw_only=True):
    """Every session found of one workload on one machine class, and how its anchor moved.

    ``sessions`` are in the order they were measured; ``log`` is oldest first. ``versions`` counts
    the committed versions of the baseline that these come from, ``unsteady`` and ``in_turn`` the
    run records left out: without a steady state, or stepping in turn with another commit.
    ``other_workload`` counts the sessions left out because they declare another workload than the
    newest one does.
    """

    identity: str
    nodeid: str
    machine: str
    sessions: list[SeenSession]
    log: list[RefreshEntry] = []
    versions: int = 0
    unsteady: int = 0
    in_turn: int = 0
    other_workload: int = 0
