"""Interval arithmetic on integer nanoseconds: label a stretch by priority, cut lists by each other.

All intervals are half-open ``[start, end)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .timeline import IntArray, SmallIntArray

NO_CODE = -1
"""Code of a stretch that no interval covers."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Consecutive stretches, each with one code; together they cover a whole without a hole."""

    start_ns: IntArray
    end_ns: IntArray
    code: SmallIntArray

    def __len__(self) -> int:
        return len(self.start_ns)


def label_stretch(
    start_ns: IntArray, end_ns: IntArray, code: npt.NDArray[np.integer], whole: tuple[int, int]
) -> Labelled:
    """Partition ``whole`` by the lowest code among the intervals that cover each nanosecond.

    Codes are ≥ 0, and 0 has the highest priority. What nothing covers has ``NO_CODE``.
    """
    begin, end = whole
    start = np.clip(start_ns, begin, end)
    stop = np.clip(end_ns, begin, end)
    kept = stop > start
    start, stop, code = start[kept], stop[kept], code[kept]
    count = len(start)
    bounds = np.concatenate((start, stop))
    order = np.argsort(bounds, kind="stable")  # two sorted runs: linear for a merge sort
    rank = np.empty(2 * count, np.int64)
    rank[order] = np.arange(2 * count)
    bounds = np.concatenate((np.array([begin], np.int64), bounds[order], np.array([end], np.int64)))
    best = np.full(2 * count + 1, NO_CODE, np.int32)
    for one in np.unique(code)[::-1]:
        mine = np.flatnonzero(code == one)
        change = np.zeros(2 * count, np.int32)
        change[rank[mine]] = 1
        change[rank[mine + count]] = -1
        best[1:][np.cumsum(change, dtype=np.int32) > 0] = one
    return _merged(bounds, best)


def _merged(bounds: IntArray, code: SmallIntArray) -> Labelled:
    """Drop empty stretches and join neighbours of one code."""
    filled = np.diff(bounds) > 0
    start, code = bounds[:-1][filled], code[filled]
    if not len(start):
        return Labelled(bounds[:0], bounds[:0], code)
    changes = np.concatenate((np.array([True]), code[1:] != code[:-1]))
    start, code = start[changes], code[changes]
    return Labelled(start, np.concatenate((start[1:], bounds[-1:])), code)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Intersections of two lists: piece ``i`` lies in interval ``left[i]`` and ``right[i]``."""

    left: IntArray
    right: IntArray
    start_ns: IntArray
    end_ns: IntArray


def cut(start_ns: IntArray, end_ns: IntArray, by: Labelled) -> Pieces:
    """Cut sorted, disjoint, non-empty intervals at the borders of ``by``."""
    low = np.searchsorted(by.end_ns, start_ns, side="right")
    high = np.searchsorted(by.start_ns, end_ns, side="left")
    counts = np.maximum(high - low, 0)
    left = np.repeat(np.arange(len(start_ns)), counts)
    first = np.cumsum(counts) - counts
    right = np.arange(len(left)) - np.repeat(first - low, counts)
    return Pieces(
        left,
        right,
        np.maximum(start_ns[left], by.start_ns[right]),
        np.minimum(end_ns[left], by.end_ns[right]),
    )


def interval_of(times: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """The interval [``start``, ``end``), by ``start``, that each moment lies in; −1 for none."""
    if not len(start):
        return np.full(len(times), -1, np.int64)
    at = np.searchsorted(start, times, side="right") - 1
    inside = (at >= 0) & (times < end[np.maximum(at, 0)])
    result: IntArray = np.where(inside, at, -1)
    return result
