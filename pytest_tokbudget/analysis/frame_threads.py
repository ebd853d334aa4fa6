"""What the threads of a hot frame are to the rate, and how long they were seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..records.cpu import SampledStacks, SampledThread
from ..records.marks import MarkSeries
from ..records.result import COUNTING, LIMITING
from .frames import StackTables


@dataclass(frozen=True, slots=True)
class FrameThreads:
    """Sampled threads by name: seconds seen, and who counts steps or is of the limiting role."""

    seen_s: Mapping[str, float]
    counting: AbstractSet[str]
    limiting: AbstractSet[str]

    @classmethod
    def of(
        cls,
        tables: StackTables | None,
        stacks: SampledStacks | None = None,
        marks: Sequence[MarkSeries] = (),
        limiting: str | None = None,
    ) -> FrameThreads:
        """Take the seconds from ``tables``, and from ``marks`` what each thread is."""
        threads = stacks.threads if stacks is not None else []
        counting = {one.native_id for one in marks if one.counts}
        of_role = {one.native_id for one in marks if limiting in (one.role, one.worker)}
        return cls(
            seen_s={one.name: one.exclusive_s for one in tables.by_thread} if tables else {},
            counting=_named(threads, counting),
            limiting=_named(threads, of_role) if limiting is not None else frozenset(),
        )

    def share(self, cost_s: float, threads: Sequence[str]) -> float | None:
        """``cost_s`` of all the time of ``threads``, 0 … 1."""
        seen_s = sum(self.seen_s.get(one, 0.0) for one in threads)
        return min(cost_s / seen_s, 1.0) if seen_s > 0 else None

    def kind(self, threads: Sequence[str]) -> str | None:
        """Whether all of ``threads`` count steps, or are of the limiting role."""
        names = set(threads)
        if names <= self.counting:
            return COUNTING
        return LIMITING if names <= self.limiting else None


def _named(threads: Sequence[SampledThread], ids: AbstractSet[int]) -> frozenset[str]:
    """Names that only threads of ``ids`` have; 0 is an id that was not read."""
    others = {one.name for one in threads if one.native_id not in ids or not one.native_id}
    return frozenset(one.name for one in threads) - others
