"""py-spy's chrometrace → rounds and runs of stacks, in the sampler's own clock.

The format keeps changes only: frames begin and end when a thread's stack differs from the round
before. A thread that has ended stays open to the end of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from ..errors import UnreadableError

SAME_ROUND_US = 300
_THREAD = re.compile(r"thread \((\d+)\): ?(.*)", re.DOTALL)
_BARE_THREAD = re.compile(r"thread \((0x[0-9a-fA-F]+|\d+)\)")

FrameKey = tuple[str, str, int]
Run = tuple[int, int, int, int]
"""(thread, stack, first round, round after the last)."""


class _Place(msgspec.Struct):
    filename: str = ""
    line: int = 0


class _Event(msgspec.Struct):
    name: str
    ph: str
    tid: int
    ts: int
    args: _Place


@dataclass(slots=True)
class RawStacks:
    """What the file holds. ``threads`` are ``(native id, name)`` in the order in which the sampler
    reads them, ``stacks`` tuples of indices into ``frames``, root first; ``round_us`` are the
    moments of rounds in which anything changed. The last round only closes the file."""

    threads: list[tuple[int, str]] = field(default_factory=list)
    frames: list[FrameKey] = field(default_factory=list)
    stacks: list[tuple[int, ...]] = field(default_factory=list)
    round_us: list[int] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """One thread while the file is read: its frames, and the run they are in."""

    frames: list[int] = field(default_factory=list)
    began: int = 0
    touched: bool = False
    run: tuple[int, int] | None = None


def read_chrometrace(trace: bytes) -> RawStacks:
    """Read one file. Raises ``UnreadableError`` for what is no chrometrace (a torn file too)."""
    try:
        events = msgspec.json.decode(trace, type=list[_Event])
    except msgspec.DecodeError as error:
        raise UnreadableError(f"py-spy's trace cannot be read: {error}") from error
    return _Reader().read(events)


class _Reader:
    def __init__(self) -> None:
        self.raw = RawStacks()
        self._frames: dict[FrameKey, int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._threads: dict[tuple[int, str], int] = {}
        self._open: dict[int, _Open] = {}
        self._in_round: dict[int, int] = {}
        self._last_us = 0

    def read(self, events: list[_Event]) -> RawStacks:
        for event in events:
            if self._begins_round(event):
                self._close_round()
                self.raw.round_us.append(event.ts)
            self._in_round[event.tid] = event.ts
            self._last_us = event.ts
            thread = self._open.setdefault(event.tid, _Open())
            if event.ph == "B":
                key = (event.name, event.args.filename, event.args.line)
                thread.frames.append(self._index(key))
            elif thread.frames:
                thread.frames.pop()
        self._close_round()
        self.raw.frames = list(self._frames)
        self.raw.stacks = list(self._stacks)
        self.raw.threads = list(self._threads)
        return self.raw

    def _begins_round(self, event: _Event) -> bool:
        if not self.raw.round_us or event.ts - self._last_us > SAME_ROUND_US:
            return True
        return self._in_round.get(event.tid, event.ts) != event.ts

    def _index(self, key: FrameKey) -> int:
        return self._frames.setdefault(key, len(self._frames))

    def _close_round(self) -> None:
        """Turn the stacks of the threads that changed in this round into runs."""
        now = len(self.raw.round_us) - 1
        keys = list(self._frames)
        for tid in self._in_round:
            thread = self._open[tid]
            if thread.run is not None and now > thread.began:
                self.raw.runs.append((*thread.run, thread.began, now))
            thread.began, thread.run = now, None
            if thread.frames:
                root, rest = keys[thread.frames[0]], tuple(thread.frames[1:])
                name = self._threads.setdefault(_thread(root[0]), len(self._threads))
                # A thread that begins or ends has no frame of its own: no stack either.
                if rest:
                    thread.run = (name, self._stacks.setdefault(rest, len(self._stacks)))
        self._in_round.clear()


def _thread(root: str) -> tuple[int, str]:
    """Native id (0: not said) and name from ``"thread (123): name"``."""
    if match := _THREAD.fullmatch(root):
        return int(match[1]), match[2]
    if match := _BARE_THREAD.fullmatch(root):
        return (int(match[1]) if match[1].isdigit() else 0), ""
    return 0, root
