"""What the machine did during the timing pass, as another process saw it."""

from __future__ import annotations

from .base import Record


class Range(Record, frozen=True, kw_only=True):
    """A sampled figure: extremes, mean, and standard deviation as the measure of volatility."""

    min: float
    mean: float
    max: float
    deviation: float


class DeviceTelemetry(Record, frozen=True, kw_only=True):
    """One device. A figure the driver does not give is ``None``, with the reason under
    ``unavailable``.

    ``utilization_pct`` is NVML's: the share of time in which at least one kernel ran, whatever it
    did (a spinning NCCL kernel is full utilization). ``reasons`` maps each clocks-event reason seen
    to the share of samples, 0 … 1. ``foreign_processes`` is the largest number seen of processes
    that are not the workload's; ``foreign`` names those that can be named.
    """

    uuid: str
    index: int
    product: str
    samples: int
    sm_clock_mhz: Range | None = None
    memory_clock_mhz: Range | None = None
    power_w: Range | None = None
    temperature_c: Range | None = None
    memory_used_bytes: Range | None = None
    utilization_pct: Range | None = None
    memory_utilization_pct: Range | None = None
    reasons: dict[str, float] = {}
    throttled_share: float | None = None
    foreign_processes: int | None = None
    foreign: list[str] = []
    unavailable: dict[str, str] = {}


class MachineWatch(Record, frozen=True, kw_only=True):
    """All devices, and the host: ``cpu_steal_pct`` of all cores, ``load`` the 1-minute average."""

    seconds: float
    samples: int
    devices: list[DeviceTelemetry] = []
    cpu_busy_pct: Range | None = None
    cpu_steal_pct: Range | None = None
    load: Range | None = None
    unavailable: dict[str, str] = {}
