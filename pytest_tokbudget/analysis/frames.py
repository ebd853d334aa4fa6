"""Tables of sampled stacks: by innermost frame, file, thread, thread root and role.

Seconds are summed over threads. ``exclusive``: the thread was in that very frame; ``inclusive``: in
it or in what it called. A frame that waits or sleeps is split by its caller, for one helper that
sleeps on behalf of many says nothing, and a frame of a library by the user's code that called it.
Stacks of a thread that just starts or ends our instruments are left out; a call of our recorder
counts for the line that made it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..records.cpu import CpuRecord, SampledStacks, ThreadClock
from .frame_kinds import (
    INSTRUMENTS,
    LOOPS,
    OURS,
    FrameKind,
    frame_kind,
    is_library_code,
    is_plumbing,
    root_frame,
    short_path,
)
from .our_calls import without_our_calls
from .role_lines import RoleLines, StackTexts
from .sample_weights import Floats, Ints, Weights, run_weights


@dataclass(frozen=True, slots=True)
class FrameRow:
    """One innermost frame in the threads of one role: what a step pays is not mixed with what
    bystanders do in the same function. ``role`` is the name of a worker without one, and empty for
    all threads that mark no steps. ``share`` is of all samples; ``cpu_s`` is NaN without thread
    clocks; ``worker_s`` is the part of ``exclusive_s`` in threads that mark steps; ``inclusive_s``
    is of all roles.

    ``caller`` is set where the frame waits, sleeps, or is a library's: ``"function (file:line)"``.
    """

    function: str
    file: str
    line: int
    text: str
    kind: FrameKind
    caller: str | None
    samples: int
    share: float
    exclusive_s: float
    inclusive_s: float
    cpu_s: float
    worker_s: float
    threads: tuple[str, ...]
    role: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A file, a thread, the function threads began with, or a role."""

    name: str
    samples: int
    exclusive_s: float
    inclusive_s: float
    cpu_s: float
    waiting_s: float


@dataclass(frozen=True, slots=True)
class StackTables:
    """All tables, most seconds first; ``samples`` over ``seconds`` at ``rate_hz``. ``by_role`` and
    ``by_line`` have workers without a role by the names of their threads."""

    by_frame: list[FrameRow]
    by_file: list[GroupRow]
    by_thread: list[GroupRow]
    by_root: list[GroupRow]
    by_role: list[GroupRow]
    by_line: list[RoleLines]
    samples: int
    rate_hz: float
    seconds: float


def stack_tables(record: CpuRecord, rootdir: str = "") -> StackTables | None:
    """Tabulate the stacks of ``record``; ``None`` where it has none."""
    if record.stacks is None or not record.stacks.run_first:
        return None
    threads = record.clocks.threads if record.clocks is not None else []
    own = {one.native_id: one for one in threads if not one.is_process}
    return _Tables(without_our_calls(record.stacks), own, set(record.workers), rootdir).build()


class _Tables:
    def __init__(
        self,
        stacks: SampledStacks,
        clocks: Mapping[int, ThreadClock],
        workers: set[int],
        rootdir: str,
    ) -> None:
        self._stacks, self._rootdir = stacks, rootdir
        self._works = [one.native_id in workers for one in stacks.threads]
        self._names = [one.name for one in stacks.threads]
        found = [clocks.get(one.native_id) for one in stacks.threads]
        roles = [(one.role if one is not None else None) or "" for one in found]
        self._roles = [
            role or (name if works else "")
            for role, name, works in zip(roles, self._names, self._works)
        ]
        self._files = [short_path(file, rootdir) for _, file, _ in stacks.frames]
        source = stacks.source or [""] * len(stacks.frames)
        self._kinds = [
            frame_kind(function, file, text)
            for (function, file, _), text in zip(stacks.frames, source)
        ]
        self._source = source
        waits = [self._kinds[one[-1]] != FrameKind.RUN for one in stacks.stacks]
        self._waits = np.array(waits, np.bool_)
        self._library = [is_library_code(file) for _, file, _ in stacks.frames]
        self._keys = [self._key(stack) for stack in range(len(stacks.stacks))]
        self._roots = [self._root(one) for one in stacks.stacks]
        self._pairs, self._sums = self._summed(run_weights(stacks, clocks, self._waits))

    def build(self) -> StackTables:
        stacks = self._stacks
        thread = self._pairs[:, 1]
        files = [{self._files[frame] for frame in one} for one in stacks.stacks]
        return StackTables(
            by_frame=self._by_frame(),
            by_file=self._by_file(files),
            by_thread=self._groups(self._names, thread),
            by_root=self._groups(self._roots, self._pairs[:, 0]),
            by_role=[one for one in self._groups(self._roles, thread) if one.name],
            by_line=self._by_line(),
            samples=stacks.samples,
            rate_hz=stacks.rate_hz,
            seconds=stacks.seconds,
        )

    # -- sums -------------------------------------------------------------------------------------

    def _summed(self, weights: Weights) -> tuple[Ints, Weights]:
        """Distinct (stack, thread) and their summed weights: far fewer than runs."""
        width = len(self._stacks.threads)
        stack = np.array(self._stacks.run_stack, np.int64)
        theirs = ~np.array([self._instruments(one) for one in self._stacks.stacks])[stack]
        runs = stack * width + np.array(self._stacks.run_thread, np.int64)
        key, where = np.unique(runs[theirs], return_inverse=True)
        wall, cpu = (
            np.bincount(where, values[theirs], len(key)).astype(np.float64)
            for values in (weights.wall_s, weights.cpu_s)
        )
        return np.stack(np.divmod(key, width), axis=1), Weights(wall, cpu)

    def _by_frame(self) -> list[FrameRow]:
        rows: dict[tuple[int, int, str], _Sum] = defaultdict(_Sum)
        stack, thread = self._pairs.T.tolist()
        for at, (wall, cpu) in enumerate(
            zip(self._sums.wall_s.tolist(), self._sums.cpu_s.tolist())
        ):
            key = *self._keys[stack[at]], self._roles[thread[at]]
            rows[key].add(thread[at], wall, cpu)
        inclusive = self._inclusive()
        total = sum(one.wall for one in rows.values()) or 1.0
        found = [self._frame_row(key, row, total, inclusive) for key, row in rows.items()]
        return sorted(found, key=lambda one: -one.exclusive_s)

    def _frame_row(
        self, key: tuple[int, int, str], row: _Sum, total: float, inclusive: Floats
    ) -> FrameRow:
        leaf, caller, role = key
        function, _, line = self._stacks.frames[leaf]
        threads = sorted(row.threads, key=lambda one: -row.threads[one])
        return FrameRow(
            function=function,
            file=self._files[leaf],
            line=line,
            text=self._source[leaf],
            kind=self._kinds[leaf],
            caller=self._place(caller) if caller >= 0 else None,
            samples=round(row.wall * self._stacks.rate_hz),
            share=row.wall / total,
            exclusive_s=row.wall,
            inclusive_s=float(inclusive[leaf]) if caller < 0 else row.wall,
            cpu_s=row.cpu,
            worker_s=sum(row.threads[one] for one in threads if self._works[one]),
            threads=tuple(dict.fromkeys(self._names[one] for one in threads)),
            role=role,
        )

    def _key(self, stack: int) -> tuple[int, int]:
        """The innermost frame and, where that only waits or sleeps, the frame that called it;
        where it is a library's, the user's code nearest to it."""
        frames = self._stacks.stacks[stack]
        if not self._waits[stack]:
            users = (one for one in reversed(frames) if not self._library[one])
            return frames[-1], next(users, -1) if self._library[frames[-1]] else -1
        # A wait inside the standard library is told by whoever asked for it.
        leaf = len(frames) - 1
        while leaf > 0 and is_plumbing(self._files[frames[leaf]]):
            leaf -= 1
        caller = frames[leaf if leaf < len(frames) - 1 else max(leaf - 1, 0)]
        # That our own loop or the library's thread called the user's code says nothing.
        ours = self._stacks.frames[caller][1].startswith(OURS)
        known = ours or (self._library[caller] and not self._library[frames[-1]])
        return frames[-1], -1 if known else caller

    def _instruments(self, stack: list[int]) -> bool:
        return any(self._stacks.frames[one][1].startswith(INSTRUMENTS) for one in stack)

    def _by_line(self) -> list[RoleLines]:
        names = [role if works else "" for role, works in zip(self._roles, self._works)]
        of_pair = np.array(names)[self._pairs[:, 1]]
        spent = {}
        for name in sorted({*names} - {""}):
            mine = of_pair == name
            sums = np.bincount(self._pairs[mine, 0], self._sums.wall_s[mine])
            spent[name] = [(int(stack), float(sums[stack])) for stack in sums.nonzero()[0]]
        stacks, frames = self._stacks.stacks, self._stacks.frames
        texts = StackTexts(
            stacks=[self._users_part(one) for one in stacks],
            frames=[(one[0], file, one[2]) for one, file in zip(frames, self._files)],
            waits=[self._kinds[one[-1]] == FrameKind.WAIT for one in stacks],
            innermost=[self._place(leaf) for leaf, _ in self._keys],
            callers=[self._place(one) if one >= 0 else "" for _, one in self._keys],
            rate_hz=self._stacks.rate_hz,
        )
        return texts.by_role(spent)

    def _users_part(self, stack: list[int]) -> list[int]:
        """The stack below the loop of ours that called the user's step; all of it without one.

        What lies above is the same in every whole stack, and missing in a torn one."""
        ours = [at for at, one in enumerate(stack) if self._stacks.frames[one][1] in LOOPS]
        return stack[ours[-1] + 1 :] if ours else stack

    def _inclusive(self) -> Floats:
        stacks = self._stacks.stacks
        of_stack = np.bincount(self._pairs[:, 0], self._sums.wall_s, len(stacks))
        distinct = [sorted(set(one)) for one in stacks]
        flat = np.concatenate([np.array(one, np.int64) for one in distinct])
        each = np.repeat(of_stack, [len(one) for one in distinct])
        sums: Floats = np.bincount(flat, each, len(self._stacks.frames)).astype(np.float64)
        return sums

    def _by_file(self, files: list[set[str]]) -> list[GroupRow]:
        leaf = [self._files[one[-1]] for one in self._stacks.stacks]
        rows = {one.name: one for one in self._groups(leaf, self._pairs[:, 0])}
        of_stack = np.bincount(self._pairs[:, 0], self._sums.wall_s, len(files)).tolist()
        inclusive: dict[str, float] = defaultdict(float)
        for names, wall in zip(files, of_stack):
            for name in names:
                inclusive[name] += wall
        nothing = GroupRow("", 0, 0.0, 0.0, 0.0, 0.0)
        found = [
            replace(rows.get(name, nothing), name=name, inclusive_s=wall)
            for name, wall in inclusive.items()
        ]
        return sorted(found, key=lambda one: (-one.exclusive_s, -one.inclusive_s))

    def _groups(self, names: list[str], member: Ints) -> list[GroupRow]:
        """Sum by the name of each pair's ``member`` (an index into ``names``)."""
        code = {name: at for at, name in enumerate(dict.fromkeys(names))}
        of_pair = np.array([code[one] for one in names], np.int64)[member]
        waiting = np.where(self._waits[self._pairs[:, 0]], self._sums.wall_s, 0.0)
        wall, cpu, waited = (
            np.bincount(of_pair, values, len(code)).tolist()
            for values in (self._sums.wall_s, self._sums.cpu_s, waiting)
        )
        rate = self._stacks.rate_hz
        rows = [
            GroupRow(name, round(wall[at] * rate), wall[at], wall[at], cpu[at], waited[at])
            for name, at in code.items()
            if wall[at] > 0
        ]
        return sorted(rows, key=lambda one: -one.exclusive_s)

    def _root(self, stack: list[int]) -> str:
        function, file, _ = root_frame([self._stacks.frames[one] for one in stack])
        return f"{function} ({short_path(file, self._rootdir)})"

    def _place(self, frame: int) -> str:
        function, _, line = self._stacks.frames[frame]
        return f"{function} ({self._files[frame]}:{line})"


class _Sum:
    """Seconds of one row, and of each thread in it."""

    def __init__(self) -> None:
        self.wall = 0.0
        self.cpu = 0.0
        self.threads: dict[int, float] = defaultdict(float)

    def add(self, thread: int, wall: float, cpu: float) -> None:
        self.wall += wall
        self.cpu += cpu
        self.threads[thread] += wall
