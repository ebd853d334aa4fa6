"""The worker's output: followed while it runs, and its end when it has died."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

CHUNK_BYTES = 1 << 16
TAIL_BYTES = 1 << 14
TAIL_LINES = 60


class OutputFollower:
    """Passes on what is appended to a file.

    A file, not a pipe: the worker never waits for whoever reads.
    """

    def __init__(self, path: Path, on_output: Callable[[str], None]) -> None:
        self._file = path.open("rb", buffering=0)
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def pass_on(self) -> None:
        """Pass on all that was appended since the last call."""
        while data := self._file.read(CHUNK_BYTES):
            self._on_output(self._decoder.decode(data))

    def close(self) -> None:
        """Pass on the rest."""
        self.pass_on()
        rest = self._decoder.decode(b"", final=True)
        if rest:
            self._on_output(rest)
        self._file.close()


def tail(path: Path, lines: int = TAIL_LINES, size: int = TAIL_BYTES) -> str:
    """The last ``lines`` lines within the last ``size`` bytes of a text file; ``""`` without one.

    Says how much was left out before them. Of a line that a progress bar wrote over and over, its
    last state is shown.
    """
    try:
        with path.open("rb") as file:
            whole = file.seek(0, 2)
            file.seek(max(0, whole - size))
            data = file.read(size)
    except FileNotFoundError:
        return ""
    ends_with_newline = data.endswith(b"\n")
    kept = b"\n".join(data.split(b"\n")[-lines - ends_with_newline :])
    shown = "\n".join(
        line.rstrip("\r").rpartition("\r")[2]
        for line in kept.decode("utf-8", errors="replace").rstrip("\n").split("\n")
    )
    left_out = whole - len(kept)
    return f"[… {left_out:,} bytes before this are left out]\n{shown}" if left_out else shown
