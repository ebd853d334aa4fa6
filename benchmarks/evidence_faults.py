"""The faults that are put into a step, each alone. Every one of them is a function with a name of
its own, so that stacks can point at it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_CUDA: Any = torch.cuda

FAULTS = ("none", "python", "item", "cache", "copy", "queue", "stream", "sleep")
"""``none`` is the reference; where each strikes: ``evidence_loops``, ``evidence_pipeline``."""

MILLISECONDS = 3.0
COPY_BYTES = 8 << 20


def collate_slow(iterations: int) -> int:
    """Python work of fixed length (a timed spin would get shorter on a fast host)."""
    value = 1
    for _ in range(iterations):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return value


def nap(seconds: float) -> None:
    """Sleep."""
    time.sleep(seconds)


def iterations_for(milliseconds: float) -> int:
    """How many iterations of ``collate_slow`` take about ``milliseconds`` on this host."""
    trial = 20_000
    best = min(_seconds(trial) for _ in range(9))
    return max(int(trial * milliseconds / 1e3 / best), 1)


def _seconds(iterations: int) -> float:
    begun = time.perf_counter()
    collate_slow(iterations)
    return time.perf_counter() - begun


@dataclass(frozen=True)
class Chosen:
    """The faults to record, beside ``none``, and the size of those that have one."""

    names: Sequence[str] = FAULTS[1:]
    milliseconds: float = MILLISECONDS


@dataclass
class Injector:
    """Which fault is on, and what it needs. ``active`` may be changed at any moment.

    ``milliseconds`` is what ``python``, ``stream`` and ``sleep`` put into a step.
    """

    device: torch.device
    iterations: int
    milliseconds: float = MILLISECONDS
    loader_seconds: float = 0.0
    active: str = "none"

    def __post_init__(self) -> None:
        self.cuda = self.device.type == "cuda"
        self._payload = torch.ones(COPY_BYTES // 4, device=self.device)
        self._side = _CUDA.Stream(self.device) if self.cuda else None
        self._cycles = int(self.milliseconds * 1e-3 * 1.7e9)

    def python(self) -> None:
        """About ``milliseconds`` of Python."""
        if self.active == "python":
            collate_slow(self.iterations)

    def item(self, value: Tensor) -> None:
        """Read a device value: wait for everything queued before it."""
        if self.active == "item":
            value.item()

    def cache(self) -> None:
        """Give cached memory back, so that the next step must ask the driver for it again."""
        if self.active == "cache" and self.cuda:
            torch.cuda.empty_cache()

    def copy(self) -> None:
        """Copy 8 MiB from the device into pageable memory."""
        if self.active == "copy":
            self._payload.to("cpu", copy=True)

    def stream(self) -> None:
        """Let the current stream wait for ``milliseconds`` of another one."""
        if self.active == "stream" and self._side is not None:
            self._side.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(self._side):
                _CUDA._sleep(self._cycles)
            torch.cuda.current_stream(self.device).wait_stream(self._side)

    def sleep(self) -> None:
        """Sleep for ``milliseconds``."""
        if self.active == "sleep":
            nap(self.milliseconds / 1e3)

    def loader(self) -> None:
        """Make whoever fills the queue the slower side of it."""
        if self.active == "queue" and self.loader_seconds > 0:
            nap(self.loader_seconds)
