"""What was kept of a workload over time: versions of its baseline, run records, run.json."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

from ..errors import StoreError
from ..records.baseline import Baseline, RefreshEntry, StoredSession
from ..records.history import FileVersion, SeenSession, WorkloadHistory
from ..records.result import RunResult, TestResult
from ..records.run import RunRecord
from ..records.workload import JsonValue
from .artifacts import ReportDirectory, load_run_json, load_run_record
from .codec import decode
from .machine_class import machine_class
from .refresh_log import stored_session

RUN_JSON_JOB = "run.json"

IN_TURN_SHARE = 0.25
"""A session held for more of its pass than this stepped in turn with another one (an A/B): canaries
hold it for at most 2 %. What shares its host with another session is no point of a history."""

_WHAT_NEXT = "it is left out"

Key = tuple[str, str]
"""Identity of a workload and slug of its machine class."""


@dataclass
class _Found:
    """One workload on one machine class; ``by_declaration`` keeps apart what is not comparable."""

    nodeid: str = ""
    log: list[RefreshEntry] = field(default_factory=list)
    versions: int = 0
    unsteady: int = 0
    in_turn: int = 0
    seen: list[tuple[dict[str, JsonValue] | None, SeenSession]] = field(default_factory=list)


class HistoryReader:
    """Collects sessions from wherever they were kept; ``notes`` says what could not be used.

    A session that is found in several places counts once, by the first place it was added from:
    add baselines before run records.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._found: dict[Key, _Found] = {}
        self._known: dict[tuple[Key, int, str], list[float]] = {}

    def add_versions(self, versions: Iterable[FileVersion]) -> None:
        """Add committed versions of baselines, oldest first."""
        for version in versions:
            where = f"{version.path} at {version.commit[:9]}"
            found = self._add_baseline(version.data, where)
            if found is not None:
                found.versions += 1

    def add_baselines(self, directory: Path) -> None:
        """Add the baselines that lie in ``directory`` now."""
        for path in sorted(directory.glob("*/*.json")):
            try:
                self._add_baseline(path.read_bytes(), str(path))
            except OSError as error:
                self.notes.append(f"{path}: cannot be read ({error.strerror}); {_WHAT_NEXT}")

    def add_report(self, report: Path) -> None:
        """Add the run records and the run.json of the artifacts at ``report``."""
        directory = ReportDirectory(report)
        for path in directory.records():
            try:
                self._add_run(load_run_record(path))
            except StoreError as error:
                self.notes.append(str(error))
        if directory.run_json.is_file():
            try:
                self._add_result(load_run_json(directory.run_json))
            except StoreError as error:
                self.notes.append(str(error))

    def histories(self) -> list[WorkloadHistory]:
        """Return what was found, by identity and machine class."""
        return [_history(key, found) for key, found in sorted(self._found.items()) if found.seen]

    def _add_baseline(self, data: bytes, where: str) -> _Found | None:
        try:
            baseline = decode(data, Baseline, path=Path(where), what_next=_WHAT_NEXT)
        except StoreError as error:
            self.notes.append(str(error))
            return None
        key = (baseline.workload.identity, baseline.machine_class.slug)
        found = self._at(key, baseline.workload.nodeid)
        for source, sessions in (("anchor", baseline.anchor), ("appended", baseline.appended)):
            for session in sessions:
                self._add(key, baseline.workload.declaration, session, source)
        found.log.extend(entry for entry in baseline.log if entry not in found.log)
        return found

    def _add_run(self, run: RunRecord) -> None:
        key = (run.workload.identity, machine_class(run.machine).slug)
        found = self._at(key, run.workload.nodeid)
        timing = run.timing
        if not run.warmup.steady:
            found.unsteady += 1
        elif timing.held_ns > IN_TURN_SHARE * (timing.end_ns - timing.start_ns):
            found.in_turn += 1
        else:
            self._add(key, run.workload.declaration, stored_session(run, run.job), "run")

    def _add_result(self, result: RunResult) -> None:
        """Add the sessions of a run.json whose run records are not there (any more)."""
        for test in result.tests:
            for session in _sessions_of(result, test):
                assert result.machine is not None
                slug = machine_class(result.machine).slug
                key = self._key_of(test.nodeid, slug)
                known = {one.session.tok_s for _, one in self._at(key, test.nodeid).seen}
                if not any(_same(session.tok_s, tok_s) for tok_s in known):
                    self._add(key, None, session, "run")

    def _key_of(self, nodeid: str, slug: str) -> Key:
        named = (key for key, one in self._found.items() if one.nodeid == nodeid and key[1] == slug)
        return next(named, (nodeid, slug))

    def _at(self, key: Key, nodeid: str) -> _Found:
        found = self._found.setdefault(key, _Found())
        found.nodeid = nodeid
        return found

    def _add(
        self,
        key: Key,
        declaration: dict[str, JsonValue] | None,
        session: StoredSession,
        source: str,
    ) -> None:
        known = self._known.setdefault((key, session.unix_s, session.host_hash), [])
        if session.tok_s > 0 and not any(_same(session.tok_s, tok_s) for tok_s in known):
            known.append(session.tok_s)
            seen = SeenSession(session=session, source=source)
            self._found[key].seen.append((declaration, seen))


def _same(one: float, other: float) -> bool:
    """Whether two rates are one: a baseline keeps seven digits."""
    return isclose(one, other, rel_tol=1e-6)


def _history(key: Key, found: _Found) -> WorkloadHistory:
    """Keep the sessions that declare what the newest of them does."""
    ordered = sorted(found.seen, key=lambda one: one[1].session.unix_s)
    newest = next((one for one, _ in reversed(ordered) if one is not None), None)
    alike = [seen for declaration, seen in ordered if declaration in (None, newest)]
    return WorkloadHistory(
        identity=key[0],
        nodeid=found.nodeid,
        machine=key[1],
        sessions=alike,
        log=found.log,
        versions=found.versions,
        unsteady=found.unsteady,
        in_turn=found.in_turn,
        other_workload=len(ordered) - len(alike),
    )


def chosen(histories: Sequence[WorkloadHistory], name: str) -> list[WorkloadHistory]:
    """Return those whose node id or identity is ``name``."""
    return [one for one in histories if name in (one.nodeid, one.identity)]


def _sessions_of(result: RunResult, test: TestResult) -> list[StoredSession]:
    if result.machine is None or test.outcome == "FAILED":
        return []
    created = dt.datetime.fromisoformat(result.created.replace("Z", "+00:00"))
    commit = result.machine.commit
    return [
        StoredSession(
            tok_s=one["tok_s"],
            steps=one["steps"],
            seconds=one["seconds"],
            warmup_steps=one["warmup_steps"],
            warmup_seconds=one["warmup_seconds"],
            job=RUN_JSON_JOB,
            commit=f"{commit.sha}-dirty" if commit.sha and commit.dirty_paths else commit.sha,
            host_hash=result.machine.host_hash,
            unix_s=int(created.timestamp()),
            software=result.machine.software,
            usable_cores=result.machine.usable_cores,
        )
        for one in test.sessions or ()
        if one.get("steady", True)
    ]
