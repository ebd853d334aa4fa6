"""The bounded queue of hidden states between targets and drafters."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from threading import Condition
from typing import TypeVar

T = TypeVar("T")


class QueueClosedError(Exception):
    """The queue was closed: the pipeline is being torn down."""


class HiddenStateQueue(queue.Queue[T]):
    """A ``queue.Queue`` of at most ``depth`` items that can be closed.

    When it has run dry nobody gets an item until ``min_ready`` are there (the low-water mark), so
    that drafters do not run on single items while targets recover. ``close`` wakes all who wait:
    ``put`` and ``get`` then raise ``QueueClosedError``.
    """

    def __init__(self, depth: int, min_ready: int = 1) -> None:
        super().__init__(depth)
        if not 1 <= min_ready <= depth:
            raise ValueError(f"min_ready={min_ready} is not between 1 and depth={depth}")
        self.min_ready = min_ready
        self._refilling = min_ready > 1
        self._closed = False

    def put(self, item: T, block: bool = True, timeout: float | None = None) -> None:
        """Put, waiting for room. Raises ``queue.Full`` after ``timeout`` s or without ``block``."""
        with self.mutex:
            if not self._await(self.not_full, self._has_room, block, timeout):
                raise queue.Full
            self._put(item)
            if self._refilling and self._qsize() >= self.min_ready:
                self._refilling = False
                self.not_empty.notify_all()
            elif not self._refilling:
                self.not_empty.notify()

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Get, waiting for an item. Raises ``queue.Empty`` as ``put`` raises ``queue.Full``."""
        with self.mutex:
            if not self._await(self.not_empty, self._is_ready, block, timeout):
                raise queue.Empty
            item: T = self._get()
            if not self._qsize() and self.min_ready > 1:
                self._refilling = True
            self.not_full.notify()
            return item

    def close(self) -> None:
        """Wake everybody; from now on every call raises ``QueueClosedError``."""
        with self.mutex:
            self._closed = True
            self.not_empty.notify_all()
            self.not_full.notify_all()

    def _has_room(self) -> bool:
        return self._qsize() < self.maxsize

    def _is_ready(self) -> bool:
        return not self._refilling and self._qsize() > 0

    def _await(
        self, condition: Condition, holds: Callable[[], bool], block: bool, timeout: float | None
    ) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._closed:
                raise QueueClosedError
            if holds():
                return True
            left = None if until is None else until - time.monotonic()
            if not block or (left is not None and left <= 0):
                return False
            condition.wait(left)
