"""Stored baselines as the controller uses them: read, refreshed, appended to, then written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...errors import RefreshRefusedError
from ...judging.fitness import unfit
from ...records.base import Unavailable
from ...records.baseline import Baseline
from ...records.machine import MachineRecord
from ...records.run import RunRecord
from ...records.verdict import Verdict
from ...records.workload import Workload
from ...storing.artifacts import ReportDirectory
from ...storing.baselines import BaselineDirectory
from ...storing.machine_class import machine_class
from ...storing.refresh import (
    Proposal,
    append_sessions,
    candidate,
    propose_anchor,
    refuse_dirty,
)
from ...storing.refresh_log import RefreshTerms
from ..settings import Settings
from .unjudged import recorded


class Shelf:
    """The baselines of this machine's class; ``store`` writes what was queued when it is told."""

    def __init__(
        self, settings: Settings, machine: Callable[[], MachineRecord], report: ReportDirectory
    ) -> None:
        self.store = BaselineDirectory(settings.baselines)
        self._settings, self._machine, self._report = settings, machine, report

    def load(self, run: RunRecord) -> Baseline | Unavailable:
        """The stored baseline of what ``run`` measured."""
        return self.store.load(run.workload, machine_class(run.machine))

    def expected(self, workload: Workload) -> Baseline | Unavailable:
        """The stored baseline of ``workload`` on this machine. Raises StoreError."""
        return self.store.load(workload, machine_class(self._machine()))

    def _terms(self, reason: str, wanted: int) -> RefreshTerms:
        settings = self._settings
        return RefreshTerms(
            reason=reason,
            job=settings.job,
            today=time.strftime("%Y-%m-%d", time.gmtime()),
            wanted=wanted,
            allow_dirty=settings.allow_dirty,
        )

    def check_refresh(self, workload: Workload) -> None:
        """Refuse, before anything is measured, what could not be stored in the end.

        Raises RefreshRefusedError for uncommitted changes, StoreError for a baseline that cannot be
        read.
        """
        if not self._settings.allow_dirty:
            refuse_dirty(self._machine().commit.dirty_paths)
        self.expected(workload)

    def propose(self, runs: Sequence[RunRecord], reason: str, wanted: int) -> Proposal:
        """What a refresh from ``runs`` would store. Raises RefreshRefusedError."""
        flawed = unfit(runs, None)
        if flawed is not None:
            raise RefreshRefusedError(f"this machine is unfit: {' '.join(flawed.sentences)}")
        old = self.load(runs[0])
        return propose_anchor(
            runs,
            old=old if isinstance(old, Baseline) else None,
            terms=self._terms(reason, wanted),
        )

    def replace_anchor(self, runs: Sequence[RunRecord], reason: str, wanted: int) -> Verdict:
        """Queue the new anchor and say what it is. Raises RefreshRefusedError."""
        proposal = self.propose(runs, reason, wanted)
        if proposal.replacements_needed:
            raise RefreshRefusedError(
                f"{len(proposal.set_aside)} slow sessions were measured again and "
                "slow ones came again: find out what else this machine is doing"
            )
        run = runs[0]
        self.store.replace_anchor(
            run.workload,
            machine_class(run.machine),
            proposal.sessions,
            proposal.entry,
            proposal.reference,
        )
        return recorded(proposal, run.budget)

    def append(self, runs: Sequence[RunRecord]) -> None:
        """Queue the fit sessions for the baseline's spread. Raises RefreshRefusedError."""
        old = self.load(runs[0])
        sessions = append_sessions(
            runs,
            old=old if isinstance(old, Baseline) else None,
            terms=self._terms("appended", len(runs)),
        )
        self.store.append(runs[0].workload, machine_class(runs[0].machine), sessions)

    def discard(self, runs: Sequence[RunRecord]) -> None:
        """Drop what is queued for a test that failed after all."""
        if runs:
            self.store.discard(runs[0].workload)

    def leave_candidate(self, runs: Sequence[RunRecord]) -> Path:
        """Leave the baseline that these runs would make among the artifacts."""
        return self._report.write_candidate(
            candidate(runs, terms=self._terms("candidate: no baseline before", len(runs)))
        )
