"""Where a role's time goes, by the lines of the function in which its ways part.

Innermost frames rank single operators: a model calls dozens of them, and what one line of a step
costs (packing, a Python loop, a copy) is lost among them. So the stacks of a role are followed from
the thread's root for as long as one line has nearly all of its work, which leads to what its author
thinks of as the step; other lines that matter are picked up on the way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

LEAST_SHARE = 0.01
"""Of a role's time: a line that matters."""
LEAST_SAMPLES = 3
NEARLY_ALL = 0.95
MOST_LINES = 5

Member: TypeAlias = "tuple[int, float]"
"""A stack and the seconds spent in it."""
Frame: TypeAlias = "tuple[str, str, int]"
"""Function, short file, line."""


@dataclass(frozen=True, slots=True)
class LineShare:
    """One line with all that it calls; ``share`` is of all its role's time, 0 … 1.

    ``hottest`` is the innermost frame that most of it was in; empty where that is the line itself.
    """

    function: str
    file: str
    line: int
    share: float
    samples: int
    hottest: str


@dataclass(frozen=True, slots=True)
class RoleLines:
    """The function in which the work of a role parts, and its lines that matter, hottest first,
    after those met on the way there."""

    role: str
    function: str
    file: str
    lines: tuple[LineShare, ...]

    @property
    def sentence(self) -> str:
        """One sentence on the first ``MOST_LINES`` lines."""
        told = sorted(self.lines[:MOST_LINES], key=lambda one: -one.share)
        where = f"{self.function} ({self.file})"
        return f"{self.role} by line of {where}: {'; '.join(self._told(one) for one in told)}"

    def _told(self, line: LineShare) -> str:
        text = f"{100 * line.share:.{0 if line.share >= 0.1 else 1}f} % "
        if (line.function, line.file) == (self.function, self.file):
            text += f"line {line.line}"
        else:
            text += f"{line.function} ({line.file}:{line.line})"
        return f"{text}{f', mostly {line.hottest}' if line.hottest else ''} (n = {line.samples})"


@dataclass(frozen=True, slots=True)
class StackTexts:
    """``stacks[i]`` are indices into ``frames``, root first (empty: none of the user's code).
    ``waits[i]``: its innermost frame, as text ``innermost[i]``, waits for others; ``callers[i]`` is
    who called it, where that tells more."""

    stacks: Sequence[Sequence[int]]
    frames: Sequence[Frame]
    waits: Sequence[bool]
    innermost: Sequence[str]
    callers: Sequence[str]
    rate_hz: float

    def by_role(self, spent: Mapping[str, Sequence[Member]]) -> list[RoleLines]:
        """One entry for each role (the keys of ``spent``) whose work parts somewhere."""
        found = [self._parting(role, members) for role, members in spent.items()]
        return [one for one in found if one is not None]

    def _parting(self, role: str, members: Sequence[Member]) -> RoleLines | None:
        """Follow the line that has nearly all work, until none has."""
        whole_s = _seconds(members)
        inside = [one for one in members if self.stacks[one[0]] and not self.waits[one[0]]]
        nearly_all_s = NEARLY_ALL * _seconds(inside)
        kept: list[LineShare] = []
        depth = 0
        while inside:
            by_frame: dict[int, list[Member]] = defaultdict(list)
            for one in inside:
                by_frame[self.stacks[one[0]][depth]].append(one)
            top = max(by_frame, key=lambda one: _seconds(by_frame[one]))
            inside = [one for one in by_frame[top] if len(self.stacks[one[0]]) > depth + 1]
            parts = self._in_one_function_s(inside, depth + 1) < nearly_all_s
            shares = [
                self._share(frame, found, depth, whole_s)
                for frame, found in by_frame.items()
                if parts or frame != top
            ]
            kept += sorted((one for one in shares if _matters(one)), key=lambda one: -one.share)
            if parts:
                # One line alone says no more than the hot frames do.
                function, file, _ = self.frames[top]
                return RoleLines(role, function, file, tuple(kept)) if len(kept) > 1 else None
            depth += 1
        return None

    def _in_one_function_s(self, inside: Sequence[Member], depth: int) -> float:
        """Seconds in the function that has most of them at ``depth``."""
        found: dict[tuple[str, str], float] = defaultdict(float)
        for stack, spent in inside:
            function, file, _ = self.frames[self.stacks[stack][depth]]
            found[function, file] += spent
        return max(found.values(), default=0.0)

    def _share(
        self, frame: int, members: Sequence[Member], depth: int, whole_s: float
    ) -> LineShare:
        spent_s = _seconds(members)
        return LineShare(
            *self.frames[frame],
            share=spent_s / whole_s,
            samples=round(spent_s * self.rate_hz),
            hottest=self._hottest(members, depth),
        )

    def _below(self, stack: int, depth: int) -> str:
        """The innermost frame of a stack, empty where that is the one at ``depth``, and its caller
        if that is another."""
        frames = self.stacks[stack]
        if len(frames) - 1 <= depth:
            return ""
        caller = self.callers[stack]
        mine = caller in ("", _place(*self.frames[frames[depth]]))
        return self.innermost[stack] + ("" if mine else f" from {caller}")

    def _hottest(self, members: Sequence[Member], depth: int) -> str:
        """The innermost function most time was spent in, at its hottest line."""
        by_text: dict[str, float] = defaultdict(float)
        by_function: dict[str, float] = defaultdict(float)
        for stack, spent in members:
            text = self._below(stack, depth)
            by_text[text] += spent
            by_function[_function(text)] += spent
        first = max(by_function, key=lambda one: by_function[one])
        return max(
            (one for one in by_text if _function(one) == first), key=lambda one: by_text[one]
        )


def _matters(line: LineShare) -> bool:
    return line.share >= LEAST_SHARE and line.samples >= LEAST_SAMPLES


def _place(function: str, file: str, line: int) -> str:
    return f"{function} ({file}:{line})"


def _function(text: str) -> str:
    return text.rpartition(":")[0]


def _seconds(members: Sequence[Member]) -> float:
    return sum(spent for _, spent in members)
