"""Pieces of one device's wall time with their causes, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .gaps import Gaps
from .timeline import CodeArray, IntArray, SmallIntArray


@dataclass(frozen=True, slots=True)
class Segments:
    """One entry a piece ``[start, end)``: its ``Cause`` and, where another device is involved, that
    ``partner`` (−1: none). ``gap`` indexes the device's ``Gaps``; −1 while it was busy."""

    start_ns: IntArray
    end_ns: IntArray
    cause: CodeArray
    partner: SmallIntArray
    gap: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def dur_ns(self) -> IntArray:
        """Length of each piece."""
        return self.end_ns - self.start_ns


def of_one_cause(
    start_ns: IntArray, end_ns: IntArray, cause: int | CodeArray, gap: IntArray
) -> Segments:
    """Pieces without a partner; empty ones are left out."""
    kept = end_ns > start_ns
    count = int(kept.sum())
    causes = np.full(count, cause, np.int8) if isinstance(cause, int) else cause[kept]
    return Segments(start_ns[kept], end_ns[kept], causes, np.full(count, -1, np.int32), gap[kept])


def whole_gaps(gaps: Gaps, chosen: IntArray, cause: int) -> Segments:
    """The ``chosen`` gaps, each as one piece."""
    return of_one_cause(gaps.start_ns[chosen], gaps.end_ns[chosen], cause, chosen)


def joined(parts: list[Segments]) -> Segments:
    """All pieces in order of time."""
    start = np.concatenate([one.start_ns for one in parts])
    order = np.argsort(start, kind="stable")
    return Segments(
        start[order],
        np.concatenate([one.end_ns for one in parts])[order],
        np.concatenate([one.cause for one in parts])[order],
        np.concatenate([one.partner for one in parts])[order],
        np.concatenate([one.gap for one in parts])[order],
    )
