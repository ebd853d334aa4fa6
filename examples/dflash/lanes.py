"""Where a stage works: a device and a stream of its own, and the memory it caches there."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Lane:
    """A device and a stream of one's own; on a CPU merely the device.

    ``enter`` makes both current in the calling thread.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Work on this lane inside the block."""
        if self.stream is None:
            # One thread each: two pools of threads on two cores fight for them.
            torch.set_num_threads(1)
            yield
        else:
            with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
                yield

    def mark(self) -> torch.cuda.Event | None:
        """Return an event after all work queued so far."""
        if self.stream is None:
            return None
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(self.stream)
        return event


def release_cached_memory() -> None:
    """Give cached memory back to the driver; on a CPU to the kernel."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    else:
        gc.collect(0)
        ctypes.CDLL(None).malloc_trim(0)
