"""What the marks say of each worker's time: in queue calls, and in waits that it declared.

``recorder.wait(name)`` says that a worker waits, not for whose work. Only its name can: that of a
queue or of another role is a wait for others; one with the word "device" is for what the worker
itself has put on its device, so it is its own work. What any other wait is for stays open.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from ..records.marks import QueueSeries, SpanSeries
from .intervals import label_stretch

_DEVICE = re.compile(r"\bdevice\b", re.IGNORECASE)


class TimeKind(IntEnum):
    """What a worker was in; the first of several at once counts, as a queue call inside a wait."""

    GET = 0
    PUT = 1
    OWN_DEVICE = 2
    OTHERS = 3
    OPEN = 4


@dataclass
class WorkerTime:
    """Stretches of one worker; ``open_names`` are of the waits nobody can tell the purpose of."""

    start_ns: list[int] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    open_names: list[str] = field(default_factory=list)

    def add(self, series: QueueSeries | SpanSeries, kind: TimeKind) -> None:
        """Add all stretches of ``series``."""
        self.start_ns += series.start_ns
        self.end_ns += series.end_ns
        self.kind += [kind] * len(series.start_ns)

    def share(self, window_ns: tuple[int, int]) -> list[float]:
        """Shares of the window, 0 … 1, by ``TimeKind``."""
        found = label_stretch(
            np.array(self.start_ns, np.int64),
            np.array(self.end_ns, np.int64),
            np.array(self.kind, np.int64),
            window_ns,
        )
        inside = found.code >= 0
        lengths = (found.end_ns - found.start_ns)[inside]
        sums = np.bincount(found.code[inside], lengths, len(TimeKind))
        return [float(one) / (window_ns[1] - window_ns[0]) for one in sums]

    def is_in(self, kinds: Sequence[TimeKind], window_ns: tuple[int, int]) -> bool:
        """Whether any stretch of these kinds overlaps the window."""
        return any(
            kind in kinds and start < window_ns[1] and end > window_ns[0]
            for start, end, kind in zip(self.start_ns, self.end_ns, self.kind)
        )


def worker_times(
    queues: Sequence[QueueSeries], spans: Sequence[SpanSeries], roles: Mapping[str, str]
) -> tuple[dict[str, WorkerTime], set[str]]:
    """The time of each worker by its name, and the roles that somebody declared to wait for.

    ``roles`` maps workers to roles; one that is not in it is a role of its own.
    """
    found: dict[str, WorkerTime] = defaultdict(WorkerTime)
    for call in queues:
        found[call.worker].add(call, TimeKind.GET if call.side == "get" else TimeKind.PUT)
    names = {one.queue for one in queues}
    awaited = set()
    for span in spans:
        if span.kind != "wait":
            continue
        others = {*roles.values()} - {roles.get(span.worker, span.worker)}
        if span.name in others:
            awaited.add(span.name)
        if span.name in others | names:
            kind = TimeKind.OTHERS
        elif _DEVICE.search(span.name):
            kind = TimeKind.OWN_DEVICE
        else:
            kind = TimeKind.OPEN
            found[span.worker].open_names.append(span.name)
        found[span.worker].add(span, kind)
    return found, awaited
