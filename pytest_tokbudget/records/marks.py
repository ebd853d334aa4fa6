"""Raw marks: what the recorder saw, in monotonic nanoseconds of the measured process."""

from __future__ import annotations

from .base import Record


class MarkSeries(Record, frozen=True, kw_only=True):
    """All marks of one worker, warm-up included, in the order they were made.

    ``times_ns[i]`` is when step ``i`` ended; ``tokens[kind][i]`` is what it consumed (an empty dict
    for a worker that counts nothing). ``window`` is the worker's part of the timing pass as mark
    indices ``(first, last)``: tokens of marks ``first+1 … last`` were consumed between the two
    (``first`` is −1 when the window began before the first mark), and
    ``window_ns`` are the two moments (after the device's synchronization on CUDA, so they may be
    later than the marks). Both are ``None`` for a worker outside the timing pass. ``pauses_ns`` are
    the stretches inside the window in which it was held and did not step, ``(start, end)`` each, in
    order; they belong to no step and to no rate.
    """

    worker: str
    role: str | None = None
    device: str | None = None
    native_id: int = 0
    counts: bool = False
    times_ns: list[int]
    tokens: dict[str, list[int]] = {}
    window: tuple[int, int] | None = None
    window_ns: tuple[int, int] | None = None
    pauses_ns: list[tuple[int, int]] = []


class SpanSeries(Record, frozen=True, kw_only=True):
    """Declared stretches of one worker: ``wait(name)`` or ``stage(name)``; same-length lists."""

    kind: str  # "wait" | "stage"
    name: str
    worker: str
    start_ns: list[int]
    end_ns: list[int]


class QueueSeries(Record, frozen=True, kw_only=True):
    """One side of one queue as one worker used it.

    ``sequence[i]`` numbers the items in the order the queue accepted (``put``) or handed out
    (``get``) them; a get of item ``n`` cannot end before the put of item ``n`` ended.
    A call that waited and gave up (a time-out) has the number −1: its blocked time counts, no item
    moved. ``depth[i]`` is the number of items inside right after the call (−1: the queue cannot
    say).
    """

    queue: str
    side: str  # "put" | "get"
    worker: str
    capacity: int | None = None
    low_water: int | None = None
    start_ns: list[int]
    end_ns: list[int]
    sequence: list[int]
    depth: list[int]


class GaugeSeries(Record, frozen=True, kw_only=True):
    """Values the author recorded with ``gauge(name, value)``."""

    name: str
    times_ns: list[int]
    values: list[float]
