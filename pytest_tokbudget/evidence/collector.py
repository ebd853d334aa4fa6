"""Pauses of the garbage collector, on the clock of the marks."""

from __future__ import annotations

from pytest_tokbudget.records.cpu import CollectorPauses

from .gc_pauses import GcPauses


def collector_pauses(pauses: GcPauses, unix_offset_ns: int) -> CollectorPauses:
    """``pauses`` are in Unix ns; ``unix_offset_ns`` added to monotonic ns gives Unix time."""
    return CollectorPauses(
        start_ns=[one - unix_offset_ns for one in pauses.start_ns],
        end_ns=[one - unix_offset_ns for one in pauses.end_ns],
        generation=list(pauses.generation),
        native_id=list(pauses.native_id),
    )
