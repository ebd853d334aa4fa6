"""Under what conditions a session was measured: what, beside the code, can make it slow."""

from __future__ import annotations

from .base import Record
from .telemetry import MachineWatch


class Conditions(Record, frozen=True, kw_only=True):
    """What the measuring process saw of itself and of its machine.

    ``tracers`` names what is told of every line or call of the measured thread. ``seconds`` is how
    long the CPU figures were counted: warm-up and timing pass. ``core_wait_share`` is the part of
    that time in which the measured thread was ready to run and had no core, ``steal_share`` the
    part of all cores' time that the hypervisor gave to others, ``others_busy_share`` the part of
    all cores' time used by processes that are not this one or its children; each 0 … 1. ``load`` is
    the 1-minute average at the end. ``watch`` covers the timing pass alone; ``of_controller`` are
    those of its foreign processes that started this session.
    """

    tracers: list[str] = []
    launch_blocking: bool = False
    seconds: float
    core_wait_share: float | None = None
    steal_share: float | None = None
    others_busy_share: float | None = None
    load: float | None = None
    usable_cores: int
    of_controller: list[str] = []
    watch: MachineWatch | None = None
    unavailable: dict[str, str] = {}
