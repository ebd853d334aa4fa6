"""Public fakes, for tests of this package and of what is built on it. No sleeping, no devices."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .records.base import Unavailable


class FakeClock:
    """A clock that stands still until it is told to advance; thread-safe.

    ``FakeClock(start_ns=1_000)``; ``advance(seconds)`` and ``sleep(seconds)`` move it on at once.
    Unix time runs along, offset by ``unix_offset_ns``.
    """

    def __init__(self, start_ns: int = 1_000_000_000, unix_offset_ns: int = 10**18) -> None:
        self._now_ns = start_ns
        self._unix_offset_ns = unix_offset_ns
        self._lock = threading.Lock()

    def monotonic_ns(self) -> int:
        """Return the fake time in ns."""
        return self._now_ns

    def unix_ns(self) -> int:
        """Return the fake time in ns since the epoch."""
        return self._now_ns + self._unix_offset_ns

    def sleep(self, seconds: float) -> None:
        """Advance by ``seconds`` without waiting."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Advance by ``seconds``; raises ``ValueError`` for a negative number."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back, yet it was advanced by {seconds} s")
        with self._lock:
            self._now_ns += round(seconds * 1e9)


class FakeDevices:
    """Devices that only take note.

    ``synchronized`` lists the calls of ``synchronize`` in order, as ``(device, thread name)``, and
    ``None`` for all devices; when given a ``clock``, each call takes ``synchronize_s`` of its time.
    ``reserved`` is what ``reserved_bytes`` returns and may be set by a test.
    """

    def __init__(
        self,
        names: tuple[str, ...] = (),
        clock: FakeClock | None = None,
        synchronize_s: float = 0.0,
    ) -> None:
        self.names = list(names)
        self.reserved = 0
        self.synchronized: list[tuple[str | None, str]] = []
        self._clock = clock
        self._synchronize_s = synchronize_s

    def used(self) -> list[str]:
        """Return the names given at the start."""
        return list(self.names)

    def synchronize(self, device: str | None = None) -> None:
        """Take note of the call and its thread."""
        self.synchronized.append((device, threading.current_thread().name))
        if self._clock is not None:
            self._clock.advance(self._synchronize_s)

    def reserved_bytes(self) -> int:
        """Return ``reserved``."""
        return self.reserved


class FakeInstrument:
    """An instrument that writes down in ``calls`` what is done to it.

    ``calls`` holds ``"begin"``, ``"end"`` and ``"end WHY"``; ``at_begin`` and ``at_end`` run inside
    the calls; with a ``refusal`` it does not begin. ``least_s``, ``most_s`` and ``lead_in`` may be
    set by a test.
    """

    def __init__(self, name: str = "probe", *, at_rest: bool = False, steps: int = 20) -> None:
        self.name, self.at_rest, self.steps = name, at_rest, steps
        self.least_s, self.most_s, self.lead_in = 0.0, 60.0, 0
        self.refusal: Unavailable | None = None
        self.calls: list[str] = []
        self.at_begin: Callable[[], object] = lambda: None
        self.at_end: Callable[[], object] = lambda: None

    def begin(self) -> Unavailable | None:
        """Take note, unless refused."""
        self.at_begin()
        if self.refusal is None:
            self.calls.append("begin")
        return self.refusal

    def end(self, running: str = "") -> None:
        """Take note."""
        self.calls.append(f"end {running}".rstrip())
        self.at_end()
