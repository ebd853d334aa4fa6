"""What one worker recorded, kept as plain lists that only ever grow by single calls.

A single ``append`` or ``extend`` is atomic: marks need no lock, a series is whole at any moment,
and an exception in between cannot tear it. Marks are integers in one flat list, with no object a
mark that the garbage collector would have to count and visit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias, cast

from ..records.marks import MarkSeries, QueueSeries, SpanSeries
from ..threads import native_id_of
from .tokens import by_kind, checked

QueueCall: TypeAlias = "tuple[int, int, int, int]"
"""Start ns, end ns, sequence number (−1: gave up), depth after the call."""

_LOOKED_AT = 100

CHECKED_AT_ONCE = 40
"""Length of a log up to which dicts are checked as they come; later ones when the marks are read,
for a look into a dict would cost a mark half its microsecond."""


class Stream:
    """The marks, spans and queue calls of one worker.

    ``counts`` says whether its marks are counting ones. ``hook``, when set, is called after the
    worker's next marks, in its own thread, with this stream and the time of the mark. ``quiet``
    counts the calls it is waiting in (a queue, a declared wait): inside one it runs no code of its
    own; ``waits_in`` is the queue call that has not returned yet: queue, side, start. ``alive`` is
    false once the worker left.
    """

    __slots__ = (
        "alive",
        "counts",
        "declared",
        "device",
        "error",
        "hook",
        "log",
        "name",
        "native_id",
        "pauses_ns",
        "queues",
        "quiet",
        "role",
        "spans",
        "thread",
        "waits_in",
        "window",
        "window_ns",
    )

    def __init__(self, name: str, role: str | None, device: str | None, declared: bool) -> None:
        self.name, self.role, self.device = name, role, device
        self.declared = self.counts = declared
        self.adopt_thread()
        self.log: list[object] = []
        """Time ns and tokens of each mark, one after the other."""
        self.spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self.queues: dict[tuple[str, str], list[QueueCall]] = {}
        self.hook: Callable[[Stream, int], None] | None = None
        self.quiet = 0
        self.waits_in: tuple[str, str, int] | None = None
        self.alive = True
        self.error: BaseException | None = None
        self.window: tuple[int, int] | None = None
        self.window_ns: tuple[int, int] | None = None
        self.pauses_ns: list[tuple[int, int]] = []

    def adopt_thread(self) -> None:
        """Belong to the calling thread from now on."""
        self.thread = threading.get_ident()
        self.native_id = threading.get_native_id()
        self.alive = True

    @property
    def mark_count(self) -> int:
        """How many marks were made."""
        return len(self.log) // 2

    def times_ns(self) -> list[int]:
        """Return when the marks were made."""
        return cast("list[int]", self.log[::2])

    def counts_tokens(self, bare: bool) -> bool:
        """Return whether its first marks carry tokens, or with ``bare`` whether it marks at all."""
        return any(bare or tokens is not None for tokens in self.log[1:_LOOKED_AT:2])

    def mark_series(self, kind: str, constant: int | None) -> MarkSeries:
        """Return the marks; bare counts are of ``kind``, marks without one ``constant`` tokens.

        Raises ``StepError`` for a dict that is no token count by kind.
        """
        # Two threads that mark under one name may append out of order by a switch between the two.
        flat = self.log[:]
        marks = sorted(zip(cast("list[int]", flat[::2]), flat[1::2], strict=True), key=_time_of)
        constant = constant if self.counts else None
        counts = [
            by_kind(self._checked(number, tokens), kind, constant)
            for number, (_, tokens) in enumerate(marks, start=1)
        ]
        kinds = sorted({name for each in counts for name in each})
        return MarkSeries(
            worker=self.name,
            role=self.role,
            device=self.device,
            native_id=self.native_id,
            counts=self.counts,
            times_ns=[time_ns for time_ns, _ in marks],
            tokens={name: [each.get(name, 0) for each in counts] for name in kinds},
            window=self.window,
            window_ns=self.window_ns,
            pauses_ns=list(self.pauses_ns),
        )

    def _checked(self, number: int, tokens: object) -> object:
        if type(tokens) is not dict:
            return tokens
        return checked(tokens, f"mark {number} of worker {self.name!r} was given")

    def span_series(self) -> list[SpanSeries]:
        """Return the declared waits and stages."""
        return [
            SpanSeries(
                kind=kind,
                name=name,
                worker=self.name,
                start_ns=[start for start, _ in spans],
                end_ns=[end for _, end in spans],
            )
            for (kind, name), spans in list(self.spans.items())
        ]

    def queue_series(
        self, limits: dict[str, tuple[int | None, int | None]], now_ns: int
    ) -> list[QueueSeries]:
        """Return the queue calls, one that has not returned up to ``now_ns``; ``limits`` are
        capacity and low-water mark by queue name."""
        found = []
        unended = self.waits_in
        recorded = {key: list(calls) for key, calls in list(self.queues.items())}
        if unended is not None:
            recorded.setdefault(unended[:2], []).append((unended[2], now_ns, -1, -1))
        for (queue, side), whole in recorded.items():
            capacity, low_water = limits[queue]
            start, end, sequence, depth = ([call[i] for call in whole] for i in range(4))
            found.append(
                QueueSeries(
                    queue=queue,
                    side=side,
                    worker=self.name,
                    capacity=capacity,
                    low_water=low_water,
                    start_ns=start,
                    end_ns=end,
                    sequence=sequence,
                    depth=depth,
                )
            )
        return found


def living_threads() -> set[int]:
    """Return the native ids of the threads that run; Python's own ids are used again too soon."""
    return {native_id_of(thread) for thread in threading.enumerate()} - {0}


def _time_of(mark: tuple[int, object]) -> int:
    return mark[0]
