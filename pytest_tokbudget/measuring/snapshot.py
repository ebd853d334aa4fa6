"""Repairs to what two sides of a queue recorded of the same item."""

from __future__ import annotations

import msgspec

from ..records.marks import QueueSeries


def repaired(series: list[QueueSeries]) -> list[QueueSeries]:
    """Return ``series`` with no put of an item ending after the get that received it.

    A producer's thread may be switched away between the queue's accepting an item and its reading
    of the clock; the item was inside when it was got, so the put had ended by then.
    """
    got: dict[tuple[str, int], int] = {}
    for one in series:
        if one.side == "get":
            for number, end in zip(one.sequence, one.end_ns, strict=True):
                got[one.queue, number] = end
    return [
        one
        if one.side == "get"
        else msgspec.structs.replace(
            one,
            end_ns=[
                max(start, min(end, got.get((one.queue, number), end))) if number >= 0 else end
                for number, start, end in zip(one.sequence, one.start_ns, one.end_ns, strict=True)
            ],
        )
        for one in series
    ]
