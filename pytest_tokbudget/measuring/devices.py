"""The accelerators of this process, as far as measuring must touch them."""

from __future__ import annotations

import sys
from typing import Any


class TorchDevices:
    """CUDA devices through torch, if the workload itself has loaded and initialized it.

    Never imports torch and never initializes CUDA: a device counts as used when torch's allocator
    has reserved memory on it. Other names (``"cpu"``, a simulated device) need no synchronization.
    """

    def used(self) -> list[str]:
        """Return ``["cuda:0", …]``: the devices on which memory is reserved; empty without CUDA."""
        cuda = _initialized_cuda()
        if cuda is None:
            return []
        return [f"cuda:{i}" for i in range(cuda.device_count()) if cuda.memory_reserved(i) > 0]

    def synchronize(self, device: str | None = None) -> None:
        """Wait for all work queued on ``device``, or on every used device."""
        cuda = _initialized_cuda()
        if cuda is None:
            return
        if device is None:
            for name in self.used():
                cuda.synchronize(name)
        elif device == "cuda" or device.startswith("cuda:"):
            cuda.synchronize(device)

    def reserved_bytes(self) -> int:
        """Return the bytes reserved by torch's allocators on all devices; 0 without CUDA."""
        cuda = _initialized_cuda()
        if cuda is None:
            return 0
        return sum(int(cuda.memory_reserved(i)) for i in range(cuda.device_count()))


def recompilations() -> int | None:
    """Return how many frames dynamo has compiled so far; ``None`` when it is not in use."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return None if counters is None else int(counters["frames"]["total"])


def _initialized_cuda() -> Any | None:
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
