"""What a person sees while sessions run: a live line on a terminal, a line now and then in a log.

No rates: a rate seen on the way invites a judgement that only the whole may make.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .figures import count, fitting

LOG_EVERY_NS = 30_000_000_000
DRAW_EVERY_NS = 100_000_000


class Progress(Protocol):
    """Told of each session as it runs; any call after ``close`` is ignored."""

    def session_started(self, nodeid: str, index: int, total: int) -> None:
        """Session ``index`` (from 1) of at most ``total`` of this test begins."""
        ...

    def update(self, phase: str, steps: int) -> None:
        """The session is in ``phase`` and has completed ``steps`` steps since its start."""
        ...

    def session_ended(self) -> None:
        """The session is over, however it ended."""
        ...

    def close(self) -> None:
        """Leave the stream as other writers expect it; may be called twice."""
        ...


def make_progress(
    stream: TextIO, *, is_tty: bool, monotonic_ns: Callable[[], int] = time.monotonic_ns
) -> Progress:
    """Return the progress for ``stream``: live on a terminal, lines in a log."""
    if is_tty:
        return LiveProgress(stream, monotonic_ns)
    return LogProgress(stream, monotonic_ns)


class LogProgress:
    """One plain line when a session starts, and at most one every 30 s while it runs."""

    def __init__(self, stream: TextIO, monotonic_ns: Callable[[], int]) -> None:
        self._stream, self._now = stream, monotonic_ns
        self._session = ""
        self._last_ns = self._start_ns = 0
        self._closed = False

    def session_started(self, nodeid: str, index: int, total: int) -> None:
        """Write that the session starts."""
        self._session = f"{nodeid}: session {index} of {total}"
        self._start_ns = self._now()
        self._write("started")

    def update(self, phase: str, steps: int) -> None:
        """Write where the session is, unless a line was written less than 30 s ago."""
        if self._session and self._now() - self._last_ns >= LOG_EVERY_NS:
            elapsed_s = (self._now() - self._start_ns) / 1e9
            self._write(f"{phase}, {count(steps, 'step')}, {elapsed_s:.0f} s")

    def session_ended(self) -> None:
        """Write nothing: the verdict follows, or the next session."""
        self._session = ""

    def close(self) -> None:
        """Write nothing more."""
        self._closed = True

    def _write(self, text: str) -> None:
        if self._closed:
            return
        self._last_ns = self._now()
        line = f"tokbudget: {self._session}, {text}"
        self._stream.write(fitting(line, _encoding(self._stream)) + "\n")
        self._stream.flush()


class LiveProgress:
    """One line that is redrawn in place, and gone when the session is over."""

    def __init__(self, stream: TextIO, monotonic_ns: Callable[[], int]) -> None:
        self._console = Console(file=stream, force_terminal=True, legacy_windows=False)
        self._encoding = _encoding(stream)
        self._now = monotonic_ns
        self._live: Live | None = None
        self._nodeid = self._session = ""
        self._start_ns = self._drawn_ns = 0
        self._closed = False

    def session_started(self, nodeid: str, index: int, total: int) -> None:
        """Draw the line of this session."""
        self.session_ended()
        if self._closed:
            return
        self._nodeid, self._session = nodeid, f"session {index} of {total}"
        self._start_ns = self._drawn_ns = self._now()
        # Redrawn by ``update`` alone: a thread of its own could write between pytest's own words.
        self._live = Live(
            self._line("starting", 0),
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def update(self, phase: str, steps: int) -> None:
        """Redraw the line, at most ten times a second."""
        if self._live is not None and self._now() - self._drawn_ns >= DRAW_EVERY_NS:
            self._drawn_ns = self._now()
            self._live.update(self._line(phase, steps), refresh=True)

    def session_ended(self) -> None:
        """Erase the line."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def close(self) -> None:
        """Erase the line and give the cursor back."""
        self.session_ended()
        self._closed = True

    def _line(self, phase: str, steps: int) -> Text:
        elapsed_s = (self._now() - self._start_ns) / 1e9
        done = f" · {count(steps, 'step')}" if steps else ""
        # The node id comes last: it is what a narrow terminal may cut.
        text = f"{self._session} · {phase}{done} · {elapsed_s:.0f} s · {self._nodeid}"
        return Text(fitting(text, self._encoding), style="cyan", no_wrap=True, overflow="crop")


def _encoding(stream: TextIO) -> str:
    return getattr(stream, "encoding", None) or "utf-8"
