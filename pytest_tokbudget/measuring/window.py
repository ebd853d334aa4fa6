"""Cuts the timing pass out of a pipeline that runs itself, each worker's window at its marks."""

from __future__ import annotations

import itertools

from ..ports import Clock, Devices
from .recorder import Recorder
from .streams import Stream


class WindowCut:
    """One timing pass of ``steps`` counting marks.

    Each counting worker's window begins at its first mark after ``request`` and ends at its first
    mark once ``steps`` counting marks were made inside windows overall. At these two marks, and
    nowhere else, the worker synchronizes its own device, in its own thread; one that declared no
    device synchronizes all used ones.
    """

    def __init__(self, recorder: Recorder, devices: Devices, clock: Clock, steps: int) -> None:
        self._recorder, self._devices, self._clock = recorder, devices, clock
        self.steps = steps
        self.marks = 0
        """Counting marks inside windows so far."""
        self.reached_ns: int | None = None
        """When ``steps`` marks had been made."""
        self._numbers = itertools.count(1)
        self._known: dict[int, Stream] = {}
        self._open: set[int] = set()

    def request(self, streams: list[Stream]) -> None:
        """Ask ``streams`` to begin their windows; those asked before are left alone."""
        for stream in streams:
            if id(stream) not in self._known:
                self._known[id(stream)] = stream
                self._open.add(id(stream))
                stream.window = stream.window_ns = None
                stream.hook = self._begin

    def waiting_for(self) -> list[Stream]:
        """Return the workers whose windows are not closed."""
        return [self._known[each] for each in list(self._open)]

    def closed(self, stream: Stream) -> bool:
        """Return whether the window of ``stream`` is over."""
        return id(stream) in self._known and id(stream) not in self._open

    def _begin(self, stream: Stream, _now_ns: int) -> None:
        first = stream.mark_count - 1
        self._devices.synchronize(stream.device)
        start_ns = self._clock.monotonic_ns()
        stream.window, stream.window_ns = (first, first), (start_ns, start_ns)
        stream.hook = self._count

    def _count(self, stream: Stream, now_ns: int) -> None:
        self.marks = number = next(self._numbers)
        if number < self.steps:
            return
        if self.reached_ns is None:
            self.reached_ns = now_ns
        if stream.window is None or stream.window_ns is None:
            return
        stream.hook = None
        self._devices.synchronize(stream.device)
        stream.window = (stream.window[0], stream.mark_count - 1)
        stream.window_ns = (stream.window_ns[0], self._clock.monotonic_ns())
        self._open.discard(id(stream))
        with self._recorder.changed:
            self._recorder.changed.notify_all()
