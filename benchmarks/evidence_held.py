"""What every recorded workload has in common: its recorder can make all workers stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pytest_tokbudget.measuring.recorder import Recorder


class Holdable:
    """A workload whose workers mark through ``recorder``."""

    recorder: Recorder

    @contextmanager
    def held(self) -> Iterator[Sequence[str]]:
        """Nobody touches the device inside."""
        try:
            yield self.recorder.hold()
        finally:
            self.recorder.release()
