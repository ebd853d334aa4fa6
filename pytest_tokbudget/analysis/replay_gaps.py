"""What a lane did between its calls: gaps, and the labelled parts of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .replay_lanes import LaneEvents
from .replay_program import FloatArray, LabelKind, Labels
from .timeline import BoolArray, IntArray, SmallIntArray, Timeline


@dataclass(frozen=True, slots=True)
class Gaps:
    """Per lane event: the gap before it, [``begin_ns``, ``end_ns``) in the trace's clock, and its
    parts in ns. ``own_ns`` includes ``named_ns``; ``named`` is the frame with the largest share,
    ``idle_first`` says that what was spent off the CPU lies in the first half of the gap."""

    begin_ns: IntArray
    end_ns: IntArray
    own_ns: FloatArray
    named_ns: FloatArray
    named: SmallIntArray
    sleep_ns: FloatArray
    wait_ns: FloatArray
    idle_first: BoolArray


def measure_gaps(timeline: Timeline, events: LaneEvents, labels: Labels) -> Gaps:
    """Split the gap before each event by the labels that cover it; the unlabelled rest is own."""
    begin = np.full(len(events.lane), timeline.window.start_ns, np.int64)
    reached = reached_ns(events)
    same = events.lane[1:] == events.lane[:-1]
    begin[1:][same] = reached[:-1][same]
    end = np.maximum(events.start_ns, begin)
    parts = {
        kind: _covered(events, begin, end, labels, labels.kind == kind)
        for kind in (LabelKind.WAIT, LabelKind.SLEEP)
    }
    off = parts[LabelKind.WAIT] + parts[LabelKind.SLEEP]
    early = _covered(events, begin, (begin + end) // 2, labels, labels.kind != LabelKind.PYTHON)
    named_ns, named = np.zeros(len(begin)), np.full(len(begin), -1, np.int32)
    python = labels.kind == LabelKind.PYTHON
    for frame in range(len(labels.frames)):
        share = _covered(events, begin, end, labels, python & (labels.frame == frame))
        larger = share > named_ns
        named_ns[larger], named[larger] = share[larger], frame
    own = np.maximum((end - begin) - off, 0.0)
    return Gaps(
        begin_ns=begin,
        end_ns=end,
        own_ns=own,
        named_ns=np.minimum(named_ns, own),
        named=named,
        sleep_ns=parts[LabelKind.SLEEP],
        wait_ns=parts[LabelKind.WAIT],
        idle_first=early > off / 2,
    )


def reached_ns(events: LaneEvents) -> IntArray:
    """Until when each lane has been busy, event by event (calls may overlap within a lane)."""
    result: IntArray = events.end_ns.copy()
    for lane in range(len(events.threads)):
        mine = slice(*np.searchsorted(events.lane, (lane, lane + 1)))
        result[mine] = np.maximum.accumulate(result[mine])
    return result


def _covered(
    events: LaneEvents, begin: IntArray, end: IntArray, labels: Labels, chosen: BoolArray
) -> FloatArray:
    """Nanoseconds of each interval covered by the chosen labels of its lane's Python thread."""
    result = np.zeros(len(begin))
    if not chosen.any():
        return result
    for lane, thread in enumerate(events.threads):
        mine = slice(*np.searchsorted(events.lane, (lane, lane + 1)))
        of_thread = chosen & (labels.thread == thread)
        if of_thread.any():
            covered = Coverage(labels.start_ns[of_thread], labels.end_ns[of_thread])
            result[mine] = covered(end[mine]) - covered(begin[mine])
    return result


class Coverage:
    """Nanoseconds covered by disjoint intervals up to a moment, as a function of the moment."""

    def __init__(self, start: IntArray, end: IntArray) -> None:
        order = np.argsort(start, kind="stable")
        self._start, self._end = start[order], end[order]
        self._before = np.concatenate(([0], np.cumsum(self._end - self._start)))

    def __call__(self, moments: IntArray) -> FloatArray:
        """Covered nanoseconds before each of ``moments``."""
        at = np.searchsorted(self._start, moments, side="right")
        last = np.maximum(at - 1, 0)
        open_part = np.where(at > 0, np.maximum(self._end[last] - moments, 0), 0)
        return (self._before[at] - open_part).astype(np.float64)
