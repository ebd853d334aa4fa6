"""A controller of an A/B that a test writes down beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from pytest_tokbudget.errors import MeasureError


class FakePacer:
    """Gives out ``blocks``, then the end; calls ``pause`` wherever the other side would step."""

    def __init__(self, blocks: Sequence[int], pause: Callable[[], object] = lambda: None) -> None:
        self._blocks = list(blocks)
        self._pause = pause
        self.step_ns: int | None = None
        self.done: list[tuple[int, int]] = []

    def await_warm_up(self) -> None:
        """Let the other side warm up first."""
        self._pause()

    def warmed_up(self, step_ns: int) -> None:
        """Take note."""
        self.step_ns = step_ns

    def next_block(self) -> int:
        """The next block, after one of the other side."""
        self._pause()
        return self._blocks.pop(0) if self._blocks else 0

    def block_done(self, steps: int, stepping_ns: int) -> None:
        """Take note."""
        self.done.append((steps, stepping_ns))

    def cannot(self, reason: str) -> NoReturn:
        """End the measurement."""
        raise MeasureError(f"cannot be held: {reason}")
