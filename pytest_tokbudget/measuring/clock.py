"""The machine's own clock."""

from __future__ import annotations

import time


class SystemClock:
    """Real time. The readers are the C functions themselves, since a mark reads one."""

    monotonic_ns = staticmethod(time.monotonic_ns)
    unix_ns = staticmethod(time.time_ns)

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        time.sleep(seconds)
