"""Step times without synchronizing: by device events, or by the host's clock without a device."""

from __future__ import annotations

import time
from typing import Any

import torch

_CUDA: Any = torch.cuda


class StepClock:
    """``tick()`` at the end of each step, in the thread (and on the stream) that counts them."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._ends: list[Any] = []

    def tick(self) -> None:
        """Note the end of a step."""
        if self._cuda:
            event = _CUDA.Event(enable_timing=True)
            event.record()
            self._ends.append(event)
        else:
            self._ends.append(time.perf_counter())

    def __len__(self) -> int:
        return len(self._ends)

    def take(self, begin: int, end: int) -> list[float]:
        """Milliseconds of steps ``begin … end − 1``; waits for the last of them."""
        first = max(begin, 1)
        if not self._cuda:
            return [1e3 * (self._ends[at] - self._ends[at - 1]) for at in range(first, end)]
        self._ends[end - 1].synchronize()
        return [float(self._ends[at - 1].elapsed_time(self._ends[at])) for at in range(first, end)]


class Canary:
    """A tiny forward and backward pass, launch-bound: how fast this host is right now.

    Only the host: nobody else may run or use the device meanwhile."""

    def __init__(self, device: torch.device) -> None:
        self._model = torch.nn.Sequential(
            *(torch.nn.Linear(64, 64) for _ in range(4)), torch.nn.ReLU()
        ).to(device)
        self._input = torch.ones(8, 64, device=device)
        self._cuda = device.type == "cuda"

    def run(self) -> tuple[int, int]:
        """Ten passes; begin and end in Unix ns."""
        self._settle()
        begun = time.time_ns()
        for _ in range(10):
            self._model(self._input).sum().backward()
        self._settle()
        return begun, time.time_ns()

    def _settle(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()
