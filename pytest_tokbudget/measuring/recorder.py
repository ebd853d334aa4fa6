"""The recorder: what the author's pipeline tells us about itself, at most a microsecond a mark."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import UsageError
from ..ports import Clock
from ..records.marks import GaugeSeries, MarkSeries, QueueSeries, SpanSeries
from .beat import COUNTING_MARKS, LAST_MARK_NS, Beat
from .queues import QueueProxy
from .roles import choose_counting
from .safepoints import Safepoints
from .snapshot import repaired
from .spans import Span
from .streams import CHECKED_AT_ONCE, Stream
from .tokens import checked


class Recorder:
    """Collects marks, waits, stages, gauges and queue calls of all workers; thread-safe.

    ``beat`` are the four integers of ``beat.py``, written at each counting mark. Every thread marks
    into its own stream: no lock on the way. What is passed in are host integers, never tensors.
    """

    def __init__(self, clock: Clock, *, beat: Beat | None = None) -> None:
        self.beat: Beat = [0, 0, 0, 0] if beat is None else beat
        self.changed = threading.Condition()
        """Notified when a worker left, or a window of the timing pass began or ended."""
        self._now = clock.monotonic_ns
        self._local = threading.local()
        self._streams: dict[str, Stream] = {}
        self._lock = threading.Lock()
        self._counting = itertools.count(1)
        self._safepoints = Safepoints()
        self._limits: dict[str, tuple[int | None, int | None]] = {}
        self._gauges: dict[str, list[tuple[int, float]]] = {}
        self._counting_role: str | None = None
        self.bare_marks_count = True
        """Whether a counting worker may mark without tokens (the author declared a constant)."""

    # -- what an author calls ---------------------------------------------------------------------

    def step_end(
        self,
        tokens: object = None,
        role: str | None = None,
        worker: str | None = None,
        device: str | None = None,
    ) -> None:
        """Mark that a step ended now. A safepoint.

        ``tokens`` is what the step consumed: a positive host integer (of the kind the test is
        judged by) or a dict of such among ``slots``, ``real``, ``loss``, ``draft``. Workers that
        count nothing leave it out. ``role``, ``worker`` and ``device`` are needed only outside
        ``with worker(…)``. Raises ``StepError`` for anything that is no token count.
        """
        if role is None and worker is None and device is None:
            try:
                stream: Stream = self._local.stream
            except AttributeError:
                stream = self._own_stream()
        else:
            stream = self._named_stream(worker, role, device)
        if type(tokens) is not int or tokens <= 0:
            # A dict is copied and only the first ones are looked into now: the rest when read.
            late = type(tokens) is dict and len(stream.log) > CHECKED_AT_ONCE
            tokens = tokens.copy() if late else self._unusual(tokens, stream)  # type: ignore[attr-defined]
        now = self._now()
        stream.log.extend((now, tokens))
        if stream.counts:
            beat = self.beat
            beat[LAST_MARK_NS] = now
            beat[COUNTING_MARKS] = next(self._counting)
        elif tokens is not None and self._counting_role is None:
            self._begins_to_count(stream, now)
        if stream.hook is not None:
            stream.hook(stream, now)
        if self._safepoints.holding:
            self._safepoints.stand(stream)

    @contextmanager
    def worker(
        self,
        name: str,
        role: str | None = None,
        device: str | None = None,
        counts: bool = False,
    ) -> Iterator[Recorder]:
        """Declare the calling thread a worker for as long as the block lasts.

        ``role`` is what it does, ``device`` where (``"cuda:0"``), ``counts`` whether its marks are
        the ones that count. Leaving by an exception fails the measurement at once; the exception
        goes on. Raises ``UsageError`` when another thread is working under this name.
        """
        before = getattr(self._local, "stream", None)
        stream = self._enter_stream(name, role, device, counts)
        self._local.stream = stream
        try:
            yield self
        except BaseException as error:
            stream.error = error
            raise
        finally:
            self._leave_stream(stream, before)

    def queue(self, q: Any, name: str | None = None, low_water: int | None = None) -> Any:
        """Return a proxy over ``q`` that records blocked time, numbers and depth on both sides.

        Use the proxy on both sides; its calls are safepoints. ``low_water`` is the depth below
        which a dip is reported. Raises ``UsageError`` when ``name`` is taken.
        """
        with self._lock:
            name = f"queue-{len(self._limits)}" if name is None else name
            if name in self._limits:
                raise UsageError(f"there is already a queue named {name!r}: give each its own name")
            size = getattr(q, "maxsize", getattr(q, "_maxsize", None))
            capacity = size if isinstance(size, int) and size > 0 else None
            self._limits[name] = (capacity, low_water)
        return QueueProxy(q, name, self._now, self.current, self._safe)

    def wait(self, name: str) -> Span:
        """Return a context: the worker waits for something (a lock, a copy, another worker).

        The limiting role needs to know for whose work: a ``name`` that is a queue's or another
        role's says theirs, one with the word "device" the worker's own, on its device.
        """
        return Span("wait", name, self.current, self._now, self._safe)

    def stage(self, name: str) -> Span:
        """Return a context: the worker does one named part of its step."""
        return Span("stage", name, self.current, self._now, None)

    def gauge(self, name: str, value: float) -> None:
        """Record ``value`` (a host number) of whatever ``name`` says, now."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(
                f"gauge {name!r} was given a {type(value).__qualname__}; give a host int or float"
            )
        self._gauges.setdefault(name, []).append((self._now(), float(value)))

    def hold(self, workers: Collection[str] | None = None, timeout_s: float = 10.0) -> list[str]:
        """Hold ``workers`` (``None``: all) at their next safepoint, and wait until they stand.

        Returns the names that had not come to one within ``timeout_s``. Call ``release`` after it.
        """
        return self._safepoints.hold(self.streams, workers, timeout_s)

    def hold_soon(self, coordinator: int) -> None:
        """Ask all workers to stand at their next safepoint; thread ``coordinator`` is never held.

        From a mark's hook the marking worker itself stands right there.
        """
        self._safepoints.ask(coordinator)

    def release(self) -> None:
        """Let all held workers go."""
        self._safepoints.release()

    # -- what measuring reads ---------------------------------------------------------------------

    def streams(self) -> list[Stream]:
        """Return the streams of all workers so far."""
        with self._lock:
            return list(self._streams.values())

    def counting_streams(self, constant_tokens: int | None = None) -> list[Stream]:
        """Return the workers whose marks count, and make it so from now on.

        Those declared ``counts=True``; else those of the only role whose marks carry tokens (or of
        the only role that marks at all, with ``constant_tokens``). Raises ``UsageError`` when there
        are several such roles.
        """
        with self._lock:
            streams = list(self._streams.values())
            chosen = choose_counting(streams, bare=constant_tokens is not None)
            for stream in streams:
                stream.counts = stream in chosen
            if chosen and not chosen[0].declared:
                self._counting_role = chosen[0].role or ""
        return chosen

    def current(self) -> Stream:
        """Return the calling thread's stream."""
        stream: Stream | None = getattr(self._local, "stream", None)
        return self._own_stream() if stream is None else stream

    def mark_series(self, kind: str, constant_tokens: int | None = None) -> list[MarkSeries]:
        """Return all marks; bare counts are of ``kind``, marks without one ``constant_tokens``.

        A worker with a role that made none has an empty series: it says who does what.
        """
        return [
            one.mark_series(kind, constant_tokens)
            for one in self.streams()
            if one.log or one.role is not None
        ]

    def span_series(self) -> list[SpanSeries]:
        """Return all declared waits and stages."""
        return [series for stream in self.streams() for series in stream.span_series()]

    def queue_series(self) -> list[QueueSeries]:
        """Return all queue calls; one that has not returned ends now."""
        now_ns = self._now()
        return repaired(
            [one for each in self.streams() for one in each.queue_series(self._limits, now_ns)]
        )

    def gauge_series(self) -> list[GaugeSeries]:
        """Return all gauges."""
        return [
            GaugeSeries(name=name, times_ns=[t for t, _ in points], values=[v for _, v in points])
            for name, points in list(self._gauges.items())
        ]

    # -- streams ----------------------------------------------------------------------------------

    def _own_stream(self) -> Stream:
        """Return a stream for a thread that marks without having declared itself a worker."""
        stream = self._stream(threading.current_thread().name, None, None)
        if stream.native_id != threading.get_native_id():
            stream = self._stream(f"{stream.name}-{threading.get_native_id()}", None, None)
        self._local.stream = stream
        return stream

    def _named_stream(self, worker: str | None, role: str | None, device: str | None) -> Stream:
        """Return the stream of a mark that names its worker, role or device itself."""
        cache: dict[tuple[str | None, ...], Stream] = self._local.__dict__.setdefault("named", {})
        stream = cache.get((worker, role, device))
        if stream is None:
            own: Stream | None = getattr(self._local, "stream", None)
            if own is not None and worker in (None, own.name) and role in (None, own.role):
                stream = own
                stream.device = stream.device or device
            else:
                base = own.name if own is not None else threading.current_thread().name
                name = worker or (base if role is None else f"{base}/{role}")
                stream = self._stream(name, role, device)
            cache[worker, role, device] = stream
        return stream

    def _stream(self, name: str, role: str | None, device: str | None) -> Stream:
        with self._lock:
            stream = self._streams.get(name)
            if stream is None:
                stream = self._streams[name] = Stream(name, role, device, declared=False)
                stream.counts = (role or "") == self._counting_role
            return stream

    def _enter_stream(
        self, name: str, role: str | None, device: str | None, counts: bool
    ) -> Stream:
        with self._lock:
            stream = self._streams.get(name)
            if stream is None:
                stream = self._streams[name] = Stream(name, role, device, declared=counts)
                stream.counts = counts or (role or "") == self._counting_role
            elif stream.alive:
                raise UsageError(f"a worker named {name!r} is at work: give each its own name")
            else:
                stream.adopt_thread()
            return stream

    def _leave_stream(self, stream: Stream, before: Stream | None) -> None:
        if before is None:
            del self._local.stream
        else:
            self._local.stream = before
        self._local.__dict__.pop("named", None)
        stream.alive = False
        self._safepoints.left()
        with self.changed:
            self.changed.notify_all()

    def _unusual(self, tokens: object, stream: Stream) -> object:
        if tokens is None and (self.bare_marks_count or not stream.counts):
            return None
        return checked(tokens, f"step_end() of worker {stream.name!r} was given")

    def _begins_to_count(self, stream: Stream, now: int) -> None:
        """Count a worker that was not declared to, from its first tokens on."""
        with self._lock:
            if not any(one.declared for one in self._streams.values()):
                stream.counts = True
                self.beat[LAST_MARK_NS] = now
                self.beat[COUNTING_MARKS] = next(self._counting)

    def _safe(self, stream: Stream) -> None:
        if self._safepoints.holding:
            self._safepoints.stand(stream)
