from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_tokbudget.evidence.allocator import AllocatorProbe
from pytest_tokbudget.records.base import Unavailable


class FakeTorch:
    """Two devices; the second was never used."""

    def __init__(self) -> None:
        self.stats = {
            "num_alloc_retries": 3,
            "num_ooms": 0,
            "num_device_alloc": 10,
            "num_device_free": 4,
            "allocated_bytes.all.current": 50,
            "allocated_bytes.all.peak": 4 << 20,
            "reserved_bytes.all.current": 2 << 20,
            "reserved_bytes.all.peak": 8 << 20,
        }
        self.initialized = True
        self.failure: RuntimeError | None = None
        self.cuda = SimpleNamespace(
            is_initialized=lambda: self.initialized,
            device_count=lambda: 2,
            memory_stats=self.memory_stats,
        )

    def memory_stats(self, device: int) -> dict[str, Any]:
        if self.failure is not None:
            raise self.failure
        return self.stats if device == 0 else {"reserved_bytes.all.current": 0}


def test_counts_are_of_the_stretch_and_peaks_of_the_process() -> None:
    torch = FakeTorch()
    probe = AllocatorProbe(torch)
    assert probe.start() is None
    torch.stats |= {"num_alloc_retries": 5, "num_device_alloc": 30, "num_device_free": 24}
    torch.stats |= {"reserved_bytes.all.current": 3 << 20}
    found = probe.stop()
    assert isinstance(found, list)
    (device,) = found
    assert (device.device, device.retries, device.under_pressure) == ("cuda:0", 2, True)
    assert device.reserved_change_bytes == 1 << 20
    assert device.counters_per_step(10) == {
        "allocator_retries": 0.2,
        "allocator_device_allocs": 2.0,
        "allocator_device_frees": 2.0,
        "memory_peak_mib": 4.0,
        "memory_reserved_mib": 3.0,
    }


def test_what_an_older_torch_does_not_count_is_not_zero() -> None:
    torch = FakeTorch()
    del torch.stats["num_device_alloc"]
    probe = AllocatorProbe(torch)
    probe.start()
    found = probe.stop()
    assert isinstance(found, list)
    assert found[0].device_allocs is None
    assert "allocator_device_allocs" not in found[0].counters_per_step(1)


def test_without_cuda_there_is_a_reason() -> None:
    torch = FakeTorch()
    torch.initialized = False
    assert isinstance(AllocatorProbe(torch).start(), Unavailable)


def test_a_device_that_fails_is_unavailable() -> None:
    torch = FakeTorch()
    probe = AllocatorProbe(torch)
    probe.start()
    torch.failure = RuntimeError("CUDA error: unspecified launch failure\nmore")
    found = probe.stop()
    assert isinstance(found, Unavailable)
    assert found.reason.endswith("CUDA error: unspecified launch failure")
