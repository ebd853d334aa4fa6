"""SIGTERM as an interruption, for as long as something outside this process has to be removed.

pytest leaves SIGTERM at its default, which ends the process on the spot: no ``finally`` runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM has come: what runs is unwound as by Ctrl-C, which pytest knows how to do."""


@contextlib.contextmanager
def removed_on_sigterm(remove: Callable[[], None]) -> Iterator[None]:
    """Call ``remove`` in the end, also where SIGTERM comes; then that ends the process after all.

    A handler is set only where SIGTERM has its default action, and only in the main thread: whoever
    has a handler (or ignores the signal) decides, and so does one who sets one meanwhile. What
    comes while ``remove`` is at work waits for its end.
    """
    guard = _Guard()
    try:
        guard.install()
        yield
    finally:
        guard.raises = False
        try:
            remove()
        finally:
            guard.uninstall()


class _Guard:
    def __init__(self) -> None:
        self.raises = True
        self._came = False
        self._installed = False

    def install(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._handle)
            self._installed = True

    def uninstall(self) -> None:
        """Give SIGTERM its default back, and let one that came have its way."""
        if not self._installed:
            return
        if signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self._came:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    stream.flush()
            os.kill(os.getpid(), signal.SIGTERM)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._came = True
        if self.raises:
            # Unwinding is not begun anew by a second one.
            self.raises = False
            raise Terminated("SIGTERM: ended as by Ctrl-C, to remove the checkout of the ref")
