"""Declared stretches of a worker's time."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from .streams import Stream


class Span:
    """A context manager that records when its block began and ended, exception or not.

    A wait (one with ``leave``) makes the worker count as standing still inside, and ends in a
    safepoint.
    """

    __slots__ = ("_current", "_key", "_leave", "_now", "_start", "_stream")

    def __init__(
        self,
        kind: str,
        name: str,
        current: Callable[[], Stream],
        now: Callable[[], int],
        leave: Callable[[Stream], None] | None,
    ) -> None:
        self._key = (kind, name)
        self._current, self._now, self._leave = current, now, leave

    def __enter__(self) -> None:
        self._stream = self._current()
        if self._leave is not None:
            self._stream.quiet += 1
        self._start = self._now()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end = self._now()
        stream = self._stream
        stream.spans.setdefault(self._key, []).append((self._start, end))
        if self._leave is not None:
            stream.quiet -= 1
            self._leave(stream)
