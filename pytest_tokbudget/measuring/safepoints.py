"""Places where a worker can be made to stand still: marks, queue calls, ends of declared waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable

from .streams import Stream, living_threads


class Safepoints:
    """Holds workers at their next safepoint, and lets them go.

    ``holding`` is all that a mark looks at while nobody is held. A worker inside a queue call or a
    declared wait runs no code of its own: it counts as standing, and is held when that call ends.
    """

    def __init__(self) -> None:
        self.holding = False
        self._names: frozenset[str] | None = frozenset()
        self._coordinator = 0
        self._standing: set[int] = set()
        self._changed = threading.Condition()

    def hold(
        self,
        streams: Callable[[], Iterable[Stream]],
        workers: Collection[str] | None,
        timeout_s: float,
    ) -> list[str]:
        """Hold ``workers`` (``None``: all), and wait until each stands or left.

        Returns the names still running after ``timeout_s``; they are held once they come to one.
        The calling thread is never held.
        """
        with self._changed:
            self._names = None if workers is None else frozenset(workers)
            self._coordinator = threading.get_ident()
            self.holding = True
            until = time.monotonic() + timeout_s
            while running := self._running(streams()):
                left = until - time.monotonic()
                # A worker may enter a queue call without telling anybody: look again now and then.
                if left <= 0:
                    return running
                self._changed.wait(min(left, 0.02))
        return []

    def ask(self, coordinator: int) -> None:
        """Have every worker stand at its next safepoint, and wait for none.

        ``coordinator`` is the identity of the thread that will; it is never held.
        """
        with self._changed:
            self._names = None
            self._coordinator = coordinator
            self.holding = True

    def release(self) -> None:
        """Let every held worker go."""
        with self._changed:
            self.holding = False
            self._names = frozenset()
            self._changed.notify_all()

    def stand(self, stream: Stream) -> None:
        """Stand here in the worker's own thread for as long as it is held."""
        with self._changed:
            if not self._concerns(stream):
                return
            self._standing.add(id(stream))
            self._changed.notify_all()
            try:
                while self.holding and self._concerns(stream):
                    self._changed.wait()
            finally:
                self._standing.discard(id(stream))

    def left(self) -> None:
        """Note that a worker left, so that nobody waits for it."""
        with self._changed:
            self._changed.notify_all()

    def _concerns(self, stream: Stream) -> bool:
        named = self._names is None or stream.name in self._names
        return named and threading.get_ident() != self._coordinator

    def _running(self, streams: Iterable[Stream]) -> list[str]:
        threads = living_threads()
        return [
            stream.name
            for stream in streams
            if stream.alive
            and stream.native_id in threads
            and not stream.quiet
            and stream.thread != self._coordinator
            and (self._names is None or stream.name in self._names)
            and id(stream) not in self._standing
        ]
