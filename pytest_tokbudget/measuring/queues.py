"""The queue proxy: what a queue does to the workers on both sides of it."""

from __future__ import annotations

import itertools
import queue as stdlib_queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .streams import Stream

T = TypeVar("T")


class QueueProxy(Generic[T]):
    """Stands for a queue, records each ``put`` and ``get``, and passes everything else on.

    Works on ``queue.Queue`` and its subclasses, ``queue.SimpleQueue`` and anything with ``put`` and
    ``get`` (``multiprocessing.Queue``). On a ``queue.Queue`` items are numbered and timed under the
    queue's own lock, so numbers are exact; elsewhere right after the call, where the recorder
    repairs what a thread switch turned round. ``enter`` and ``leave`` are the recorder's: the first
    gives the calling worker's stream, the second is a safepoint.
    """

    def __init__(
        self,
        queue: Any,
        name: str,
        now: Callable[[], int],
        enter: Callable[[], Stream],
        leave: Callable[[Stream], None],
    ) -> None:
        self._queue, self._name, self._now = queue, name, now
        self._enter, self._leave = enter, leave
        self._numbers = {"put": itertools.count(), "get": itertools.count()}
        self._accepted = threading.local()
        self._exact = isinstance(queue, stdlib_queue.Queue)
        if self._exact:
            # _put and _get are the documented places for subclasses; both run under the lock.
            queue._put = self._numbered("put", queue._put)
            queue._get = self._numbered("get", queue._get)

    def put(self, item: T, *args: Any, **kwargs: Any) -> None:
        """Put as the queue does; the time until it accepted the item is the producer's wait."""
        self._timed("put", self._queue.put, item, *args, **kwargs)

    def get(self, *args: Any, **kwargs: Any) -> T:
        """Get as the queue does; the time until it gave an item is the consumer's wait."""
        item: T = self._timed("get", self._queue.get, *args, **kwargs)
        return item

    def put_nowait(self, item: T) -> None:
        """Put without waiting; ``queue.Full`` as the queue raises it."""
        self.put(item, False)

    def get_nowait(self) -> T:
        """Get without waiting; ``queue.Empty`` as the queue raises it."""
        return self.get(False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def __repr__(self) -> str:
        return f"<measured queue {self._name!r} over {self._queue!r}>"

    def _timed(self, side: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        stream = self._enter()
        # Kept apart for each thread and cleared first, so that an older call leaves no trace.
        self._accepted.last = None
        stream.quiet += 1
        start, around = self._now(), stream.waits_in
        may_wait = self._may_wait(side, args, kwargs)
        if may_wait:
            stream.waits_in = (self._name, side, start)
        try:
            result = call(*args, **kwargs)
        except BaseException:  # full or empty, or the queue was closed under it
            if may_wait:
                self._record(stream, side, (start, self._now(), -1, self._depth()))
            raise
        else:
            last = self._accepted.last or (self._now(), next(self._numbers[side]), self._depth())
            self._record(stream, side, (start, *last))
        finally:
            stream.waits_in = around
            stream.quiet -= 1
            self._leave(stream)
        return result

    def _record(self, stream: Stream, side: str, call: tuple[int, int, int, int]) -> None:
        stream.queues.setdefault((self._name, side), []).append(call)

    def _numbered(self, side: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        number, size = self._numbers[side], self._queue._qsize

        def numbered(*args: Any) -> Any:
            result = inner(*args)
            self._accepted.last = (self._now(), next(number), size())
            return result

        return numbered

    def _depth(self) -> int:
        """Return the items inside; −1 where the platform's queue cannot tell (macOS)."""
        try:
            return int(self._queue.qsize())
        except (NotImplementedError, AttributeError):
            return -1

    @staticmethod
    def _may_wait(side: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        position = 1 if side == "put" else 0
        return bool(kwargs.get("block", args[position] if len(args) > position else True))
