"""The directory of baselines: found, checked, and written once at the end."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..analysis.stats import pool_learned
from ..errors import MismatchError, RefreshRefusedError, StoreError, UnreadableError
from ..records.base import SCHEMA, Unavailable
from ..records.baseline import Baseline, RefreshEntry, StoredSession
from ..records.evidence import Evidence
from ..records.machine import MachineClass
from ..records.workload import Workload
from .atomic import check_writable, locked, remove_leftovers, write_all
from .codec import encode_baseline, load
from .machine_class import ACCELERATOR_FIELDS, describe_differences, differing_fields
from .refresh import FEWEST_SESSIONS
from .refresh_log import against, like_for_like
from .workload_identity import file_name

MOST_APPENDED = 60
"""Appended sessions kept, newest first: more would only make the file long."""

Update = Callable[["Baseline | None"], "Baseline"]


@dataclass
class _Pending:
    workload: Workload
    updates: list[Update] = field(default_factory=list)


class BaselineDirectory:
    """Baselines as ``<root>/<machine class>/<workload>.json``; a ``ports.BaselineStore``.

    Nothing is written before :meth:`flush`, so what fails later can still be left out
    (:meth:`discard`), and a run that is killed leaves every file as it was.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._pending: dict[Path, _Pending] = {}

    def path_of(self, workload: Workload, machine: MachineClass) -> Path:
        """Where the baseline of ``workload`` on ``machine`` is filed."""
        return self._root / machine.slug / file_name(workload)

    def load(self, workload: Workload, machine: MachineClass) -> Baseline | Unavailable:
        """Return the baseline, or ``Unavailable`` with where it looked and what exists there.

        Within a pool the accelerators must still be those of the baseline; other hardware may
        differ (compare ``machine_class`` of the two to show it). Raises UnreadableError,
        NewerSchemaError, and MismatchError for a file of another workload or machine class.
        """
        path = self.path_of(workload, machine)
        baseline = self._read(path)
        if baseline is None:
            return self._not_found(workload, machine, path)
        _check_identity(baseline, workload, path)
        unlike = _unlike_hardware(baseline.machine_class, machine, path)
        if unlike:
            reason = f"{path}: the pool {machine.pool!r} held other accelerators then: {unlike}"
            return Unavailable(reason, _command(workload))
        return baseline

    def check_writable(self) -> None:
        """Raise StoreError, naming the directory, if a baseline could not be written in the end."""
        check_writable(self._root)
        for directory in self._classes():
            check_writable(directory)

    def replace_anchor(
        self,
        workload: Workload,
        machine: MachineClass,
        sessions: list[StoredSession],
        entry: RefreshEntry,
        reference: Evidence | None = None,
    ) -> None:
        """Queue a new anchor, with the evidence of one of its sessions.

        Appended sessions of the old one end with it; what they taught about the spread is carried
        on, unless the workload declares something else now. The entry's old → new is settled when
        the file is written. Raises MismatchError where the file is another test's.
        """

        def update(old: Baseline | None) -> Baseline:
            like = None if old is None else like_for_like(old, workload, machine)
            return Baseline(
                workload=workload,
                machine_class=machine,
                token_kind=str(workload.declaration.get("token_kind", "real")),
                anchor=sessions,
                learned=None if like is None else pool_learned(like),
                reference=reference,
                log=[
                    *([] if old is None else old.log),
                    entry if like is None else against(entry, sessions, like),
                ],
            )

        self._queue(workload, machine, update)

    def append(
        self, workload: Workload, machine: MachineClass, sessions: list[StoredSession]
    ) -> None:
        """Queue sessions for the spread of an existing baseline; its anchor stays as it is.

        Raises RefreshRefusedError without a baseline, or for one of another declaration.
        """

        def update(old: Baseline | None) -> Baseline:
            if old is None or like_for_like(old, workload, machine) is None:
                raise RefreshRefusedError(
                    f"{self.path_of(workload, machine)}: no baseline of this workload to append "
                    f"to; {_command(workload)}"
                )
            appended = [*old.appended, *sessions][-MOST_APPENDED:]
            return msgspec.structs.replace(old, schema=SCHEMA, appended=appended)

        update(self._read(self.path_of(workload, machine)))
        self._queue(workload, machine, update)

    def discard(self, workload: Workload) -> None:
        """Drop what is queued for ``workload``: its test failed after all."""
        self._pending = {
            path: one
            for path, one in self._pending.items()
            if one.workload.identity != workload.identity
        }

    def flush(self) -> list[Path]:
        """Write everything queued and return the files written, sorted.

        Files are read again under a lock, so two processes that flush at once lose nothing. Either
        all files are written or, where one cannot be, none; raises StoreError.
        """
        if not self._pending:
            return []
        with locked(self._root):
            files = {path: self._updated(path, one) for path, one in self._pending.items()}
            for directory in {path.parent for path in files}:
                if directory.is_dir():
                    remove_leftovers(directory)
            write_all(files)
        self._pending = {}
        return sorted(files)

    def _queue(self, workload: Workload, machine: MachineClass, update: Update) -> None:
        path = self.path_of(workload, machine)
        pending = self._pending.setdefault(path, _Pending(workload))
        if pending.workload.identity != workload.identity:
            raise _mismatch(path, pending.workload, workload)
        existing = self._read(path)
        if existing is not None:
            _check_identity(existing, workload, path)
            _unlike_hardware(existing.machine_class, machine, path)
        pending.updates.append(update)

    def _updated(self, path: Path, pending: _Pending) -> bytes:
        baseline = self._read(path)
        if baseline is not None:
            _check_identity(baseline, pending.workload, path)
        for update in pending.updates:
            baseline = update(baseline)
        assert baseline is not None
        return encode_baseline(baseline)

    def _read(self, path: Path) -> Baseline | None:
        what_next = "restore it from git, or delete it and refresh (--tokbudget-refresh)"
        try:
            found = load(path, Baseline, what_next=what_next)
        except FileNotFoundError:
            return None
        # Candidates, which are read elsewhere, may have fewer.
        if len(found.anchor) < FEWEST_SESSIONS:
            raise UnreadableError(
                f"{path}: anchor has {len(found.anchor)} of the sessions that a verdict rests on, "
                f"expected {FEWEST_SESSIONS} or more; {what_next}"
            )
        return found

    def _not_found(self, workload: Workload, machine: MachineClass, path: Path) -> Unavailable:
        others = sorted(self._root.glob(f"*/{path.name}"))
        if not others:
            known = [one.name for one in self._classes()]
            there = "no machine class has one of this test"
            if known:
                there += f" (there are baselines of others for {', '.join(known)})"
            if not self._root.is_dir():
                there = f"the directory {self._root} does not exist"
        else:
            there = "other machine classes have one: " + "; ".join(
                self._describe(one, machine) for one in others
            )
        reason = f"no baseline for this machine class, {machine.slug}: looked for {path}; {there}"
        return Unavailable(reason, _command(workload))

    def _classes(self) -> list[Path]:
        """The directories that hold baselines; others in the root are none of ours."""
        return sorted({path.parent for path in self._root.glob("*/*-????????.json")})

    def _describe(self, path: Path, machine: MachineClass) -> str:
        try:
            baseline = self._read(path)
        except StoreError as error:
            return f"{path.parent.name} (cannot be read: {error})"
        if baseline is None:
            return path.parent.name
        found = differing_fields(baseline.machine_class, machine)
        if not found:
            return f"{path.parent.name} (a copy of this class's own: move it to its directory)"
        return f"{path.parent.name} ({describe_differences(found, a='there', b='here')})"


def _command(workload: Workload) -> str:
    return f'to make one: pytest --tokbudget-refresh "REASON" {shlex.quote(workload.nodeid)}'


def _mismatch(path: Path, found: Workload, expected: Workload) -> MismatchError:
    return MismatchError(
        f"{path}: belongs to {found.identity}, not to {expected.identity}; "
        "rename one of the two tests, or delete the file if its test is gone"
    )


def _check_identity(baseline: Baseline, workload: Workload, path: Path) -> None:
    if baseline.workload.identity != workload.identity:
        raise _mismatch(path, baseline.workload, workload)


def _unlike_hardware(stored: MachineClass, here: MachineClass, path: Path) -> str:
    """How the accelerators of one pool differ, ``""`` if they do not.

    Raises MismatchError where the file stands in the directory of another class or pool.
    """
    found = differing_fields(stored, here)
    if found and (not here.pool or "pool" in found):
        text = describe_differences(found, a="in the file", b="here")
        raise MismatchError(
            f"{path}: belongs to machine class {stored.slug!r}, not to {here.slug!r} ({text}); "
            "move it back to its own directory, or give the pools names that differ in letters"
        )
    unlike = {name: pair for name, pair in found.items() if name in ACCELERATOR_FIELDS}
    return describe_differences(unlike, a="then", b="now")
