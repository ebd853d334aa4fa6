"""torch's caching allocator over a stretch of steps: retries, driver calls, peaks, growth."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from pytest_tokbudget.records.base import Unavailable

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class AllocatorFigures:
    """One device between ``start`` and ``stop``.

    ``retries``: allocations that failed at first, and for which cached memory was given back;
    ``device_allocs`` and ``device_frees``: calls into the driver, ``None`` where this torch does
    not count them. Peaks are of the whole process so far (they are not reset: the workload may read
    them itself); ``reserved_change_bytes`` is of the stretch alone.
    """

    device: str
    retries: int
    out_of_memory: int
    device_allocs: int | None
    device_frees: int | None
    allocated_bytes: int
    peak_allocated_bytes: int
    reserved_bytes: int
    peak_reserved_bytes: int
    reserved_change_bytes: int

    @property
    def under_pressure(self) -> bool:
        """Whether memory was so short that the allocator had to give cached memory back."""
        return self.retries > 0 or self.out_of_memory > 0

    def counters_per_step(self, steps: int) -> dict[str, float]:
        """Counters as ``run.json`` names them; not exact, so they never gate."""
        counters = {"allocator_retries": self.retries / steps}
        if self.device_allocs is not None:
            counters["allocator_device_allocs"] = self.device_allocs / steps
        if self.device_frees is not None:
            counters["allocator_device_frees"] = self.device_frees / steps
        counters["memory_peak_mib"] = self.peak_allocated_bytes / _MIB
        counters["memory_reserved_mib"] = self.reserved_bytes / _MIB
        return counters


class AllocatorProbe:
    """Reads the allocator's own counts; it neither synchronizes nor initializes CUDA."""

    def __init__(self, torch: Any = None) -> None:
        self._torch = torch
        self._before: dict[int, dict[str, Any]] = {}

    def start(self) -> Unavailable | None:
        """Remember the counts; ``Unavailable`` where CUDA is not in use."""
        stats = self._stats()
        if isinstance(stats, Unavailable):
            return stats
        self._before = stats
        return None

    def stop(self) -> list[AllocatorFigures] | Unavailable:
        """What happened since ``start``, one entry a device on which memory is reserved."""
        stats = self._stats()
        if isinstance(stats, Unavailable):
            return stats
        return [
            _figures(f"cuda:{device}", self._before.get(device, {}), now)
            for device, now in stats.items()
            if now.get("reserved_bytes.all.current", 0) > 0
        ]

    def _stats(self) -> dict[int, dict[str, Any]] | Unavailable:
        torch = self._torch if self._torch is not None else sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return Unavailable("CUDA is not in use in this process")
        try:
            return {
                device: dict(torch.cuda.memory_stats(device))
                for device in range(torch.cuda.device_count())
            }
        except RuntimeError as error:
            return Unavailable(f"the allocator cannot be asked: {str(error).splitlines()[0]}")


def _figures(name: str, before: dict[str, Any], now: dict[str, Any]) -> AllocatorFigures:
    def change(key: str) -> int:
        return int(now.get(key, 0)) - int(before.get(key, 0))

    def counted(key: str) -> int | None:
        return change(key) if key in now else None

    return AllocatorFigures(
        device=name,
        retries=change("num_alloc_retries"),
        out_of_memory=change("num_ooms"),
        device_allocs=counted("num_device_alloc"),
        device_frees=counted("num_device_free"),
        allocated_bytes=int(now.get("allocated_bytes.all.current", 0)),
        peak_allocated_bytes=int(now.get("allocated_bytes.all.peak", 0)),
        reserved_bytes=int(now.get("reserved_bytes.all.current", 0)),
        peak_reserved_bytes=int(now.get("reserved_bytes.all.peak", 0)),
        reserved_change_bytes=change("reserved_bytes.all.current"),
    )
