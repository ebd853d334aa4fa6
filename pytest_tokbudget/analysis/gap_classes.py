"""Names for what a thread did between its calls, from samples of its stacks.

Steps repeat, so the gap before the k-th call of a step is one class over all steps: its
milliseconds are measured on every step, and only its name rests on samples. Too few of them, or
too many different ones, leave it without a name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .intervals import interval_of
from .replay_decode import Decoded
from .replay_program import FloatArray, Frame, LabelKind, Labels
from .timeline import BoolArray, CodeArray, IntArray, SmallIntArray, Window

LEAST_SAMPLES = 3
LEAST_AGREEMENT = 0.6
LEAST_REPEATING = 0.9
LEAST_CLASS_NS = 200_000.0
"""Shorter classes are dispatch: samples at 100 Hz say nothing about them."""


@dataclass(frozen=True, slots=True)
class StackSamples:
    """Samples of threads' stacks in the trace's clock, idle ones included, blind stretches not.

    ``thread`` indexes ``Timeline.threads``, ``frame`` indexes ``frames`` (−1: none worth a name);
    ``kinds[frame]`` says whether a thread in that frame waits for others, sleeps, or runs. ``site``
    likewise is the innermost frame of the user's own code (empty: not known).
    """

    thread: SmallIntArray
    time_ns: IntArray
    frame: SmallIntArray
    frames: tuple[Frame, ...]
    kinds: tuple[LabelKind, ...]
    site: SmallIntArray = field(default_factory=lambda: np.zeros(0, np.int32))

    def agreed_site(self, which: BoolArray | IntArray) -> Agreed | None:
        """As ``agreed``, of the user's own code where it is known."""
        return self._agreed((self.site if len(self.site) else self.frame)[which])

    def agreed(self, which: BoolArray | IntArray) -> Agreed | None:
        """What most of the chosen samples agree on; ``None`` if too few do.

        Lines of one function agree with each other: a loop is in one of its lines or the next. A
        frame that waits does not agree with one that runs.
        """
        return self._agreed(self.frame[which])

    def _agreed(self, chosen: SmallIntArray) -> Agreed | None:
        named = chosen[chosen >= 0]
        if len(named) < LEAST_SAMPLES:
            return None
        by_frame = Counter(named.tolist())
        votes: Counter[tuple[object, ...]] = Counter()
        for frame, count in by_frame.items():
            votes[self._function(frame)] += count
        (function, agreeing), *_ = votes.most_common(1)
        share = agreeing / len(chosen)
        if agreeing < LEAST_SAMPLES or share < LEAST_AGREEMENT:
            return None
        lines = (one for one in sorted(by_frame) if self._function(one) == function)
        return Agreed(max(lines, key=lambda one: by_frame[one]), agreeing, share)

    def _function(self, frame: int) -> tuple[object, ...]:
        return (*self.frames[frame].place, self.kinds[frame])


class Agreed(NamedTuple):
    """The commonest frame of the function that samples agree on, how many do, and which share."""

    frame: int
    agreeing: int
    share: float


def step_positions(start_ns: IntArray, kind: CodeArray, window: Window) -> IntArray | None:
    """Position within its step of each of a lane's events, sorted by time; −1 for those outside.

    Steps are told by ``window.step_ends_ns``: a position is then that among the events of the same
    ``kind`` (an allocator that asks for more events in one step than in another must not shift the
    launches), positions of different kinds differ, and events of a kind whose number is unusual in
    more than one step in ten have none. Without them steps are told by number alone. ``None`` where
    nothing repeats.
    """
    if window.step_ends_ns:
        return _positions_by_marks(start_ns, kind, np.array(window.step_ends_ns))
    count, steps = len(start_ns), window.steps
    usual = count // max(steps, 1)
    position = np.where(np.arange(count) < usual * steps, np.arange(count) % max(usual, 1), -1)
    # Told by number only, the steps must prove that they repeat.
    first = kind[:usual]
    same = np.mean(kind[: usual * steps] == np.tile(first, steps)) if usual else 0.0
    return position if same >= LEAST_REPEATING else None


def _positions_by_marks(start_ns: IntArray, kind: CodeArray, ends_ns: IntArray) -> IntArray | None:
    result: IntArray = np.full(len(start_ns), -1, np.int64)
    step = np.searchsorted(ends_ns, start_ns, side="right")
    used = 0
    for one in np.unique(kind):
        mine = np.flatnonzero(kind == one)
        firsts = np.searchsorted(step[mine], np.arange(len(ends_ns) + 1))
        lengths = np.diff(firsts)
        usual = int(np.bincount(lengths).argmax())
        if not usual or np.mean(lengths == usual) < LEAST_REPEATING:
            continue
        within = np.arange(len(mine)) - firsts[step[mine]]
        known = (within < usual) & (step[mine] < len(ends_ns))
        result[mine[known]] = used + within[known]
        used += usual
    return result if used else None


def name_gaps(decoded: Decoded, samples: StackSamples, window: Window) -> Labels:
    """Label the long classes of gaps by the function that at least 60 % of their samples share.

    The label covers as much of each gap as the share of samples that agree.
    """
    rows: list[tuple[int, IntArray, IntArray, int]] = []
    counts = np.zeros(len(samples.frames), np.int64)
    known: dict[tuple[str, str | None], int] = {}
    for lane, thread in enumerate(decoded.events.threads):
        mine = np.arange(*np.searchsorted(decoded.events.lane, (lane, lane + 1)))
        kinds = decoded.program.host.kind[mine + lane]  # each lane before has a tail
        position = step_positions(decoded.events.start_ns[mine], kinds, window)
        if position is None:
            continue
        of_thread = samples.thread == thread
        sampled = _sampled_gaps(decoded, mine, samples.time_ns[of_thread])
        for which in _long_classes(position, decoded.gaps.own_ns[mine]):
            within = np.isin(sampled, np.flatnonzero(which))
            found = samples.agreed(np.flatnonzero(of_thread)[within])
            if found is None:
                continue
            frame, agreeing, share = found
            frame = known.setdefault(samples.frames[frame].place, frame)
            counts[frame] += agreeing
            begin = decoded.gaps.begin_ns[mine][which]
            length = (decoded.gaps.end_ns[mine][which] - begin) * share
            rows.append((thread, begin, begin + length.astype(np.int64), frame))
    return _labels(rows, samples, counts)


def _sampled_gaps(decoded: Decoded, mine: IntArray, times: IntArray) -> IntArray:
    """The gap (as an index into ``mine``) that each sample fell into, −1 for none."""
    return interval_of(times, decoded.gaps.begin_ns[mine], decoded.gaps.end_ns[mine])


def _long_classes(position: IntArray, own_ns: FloatArray) -> list[BoolArray]:
    known = position >= 0
    members = np.bincount(position[known])
    means = np.bincount(position[known], own_ns[known]) / np.maximum(members, 1)
    return [position == one for one in np.flatnonzero(means >= LEAST_CLASS_NS)]


def _labels(
    rows: list[tuple[int, IntArray, IntArray, int]], samples: StackSamples, counts: IntArray
) -> Labels:
    if not rows:
        return Labels.none()
    lengths = [len(begin) for _, begin, _, _ in rows]
    kinds = np.array(samples.kinds, np.int8)
    frame = np.repeat([row[3] for row in rows], lengths).astype(np.int32)
    return Labels(
        thread=np.repeat([row[0] for row in rows], lengths).astype(np.int32),
        start_ns=np.concatenate([row[1] for row in rows]),
        end_ns=np.concatenate([row[2] for row in rows]),
        kind=kinds[frame],
        frame=frame,
        frames=samples.frames,
        samples=tuple(int(one) for one in counts),
    )
