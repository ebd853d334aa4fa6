"""The two instruments of the evidence pass: host stacks alone, then a device trace with stacks.

Both keep what they saw and compute nothing while the workload still runs.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_tokbudget.records.base import Unavailable

from .allocator import AllocatorFigures, AllocatorProbe
from .compilations import CompilationProbe, Compilations
from .cpu import CpuEvidence
from .gc_pauses import GcPauses, GcWatch
from .kineto import LEAD_IN_STEPS, LEAST_STEPS, KinetoProbe, RawTrace

STACKS, TRACE = "stacks", "cuda"
LEAST_STACK_S = 5.0
"""At about 100 Hz some 500 samples a thread."""
MOST_STACK_S = 60.0
MOST_TRACE_S = 30.0
CANARY_RUNS = 30
_CANARY_WARM_UP = 8

Canary = Callable[[], None]


class HostStacks:
    """Stacks, thread clocks and collections of this process while nothing else is attached."""

    name = STACKS
    at_rest = False
    steps = 1
    least_s = LEAST_STACK_S
    most_s = MOST_STACK_S
    lead_in = 0

    def __init__(self) -> None:
        self.cpu = CpuEvidence()
        self.compilations: Compilations | Unavailable = Unavailable("no evidence pass was run")
        self._compiler = CompilationProbe()

    def begin(self) -> Unavailable | None:
        """Start the samplers (1 to 5 s); what cannot sample says so in the record."""
        self._compiler.start()
        self.cpu.start()
        return None

    def end(self, running: str = "") -> None:  # noqa: ARG002 - the port's; nothing has to stand
        """End them."""
        self.cpu.stop()
        self.compilations = self._compiler.stop()


@dataclass
class Traced:
    """What a device trace left. ``canary_unix_ns`` is where the traced canary ran in it,
    ``canary_untraced_ns`` how long the same took just before."""

    trace: RawTrace | Unavailable
    pauses: GcPauses
    allocator: list[AllocatorFigures] | Unavailable
    canary_unix_ns: tuple[int, int] | None = None
    canary_untraced_ns: int = 0


@dataclass
class DeviceTrace:
    """CUDA activities and, in the same window, stacks to name its gaps by.

    ``canary`` makes a fixed launch-bound piece of work for a device; ``roles`` gives what workers
    declared, by native id.
    """

    canary: Callable[[str], Canary]
    roles: Callable[[], Mapping[int, str]]
    cpu: CpuEvidence = field(default_factory=CpuEvidence)
    traced: Traced | None = None

    name = TRACE
    at_rest = True
    steps = LEAST_STEPS
    least_s = 0.0
    most_s = MOST_TRACE_S
    lead_in = LEAD_IN_STEPS

    def __post_init__(self) -> None:
        self._probe = KinetoProbe(("cuda",))
        self._collector = GcWatch()
        self._allocator = AllocatorProbe()
        self._canary_unix_ns: tuple[int, int] | None = None
        self._untraced_ns = 0

    def begin(self) -> Unavailable | None:
        """Start the profiler; ``Unavailable`` where no CUDA device is in use."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
            return Unavailable("the workload used no CUDA device")
        canary = self._made_canary()
        if canary is not None:
            self._untraced_ns = _timed(canary)[1]
        self.cpu.start()
        refused = self._probe.start()
        if refused is not None:
            self.cpu.stop()
            return refused
        if canary is not None:
            start_ns, length_ns = _timed(canary)
            self._canary_unix_ns = (start_ns, start_ns + length_ns)
        self._collector.start()
        self._allocator.start()
        return None

    def end(self, running: str = "") -> None:
        """Stop the profiler, which takes a second or more, and read its events."""
        allocator = self._allocator.stop()
        pauses = self._collector.stop()
        self.cpu.stop()
        standing = [running] if running else []
        trace = self._probe.stop(lambda: contextlib.nullcontext(standing), self.roles())
        self.traced = Traced(trace, pauses, allocator, self._canary_unix_ns, self._untraced_ns)

    def _made_canary(self) -> Canary | None:
        """A canary on the first device in use, warmed up; ``None`` where there is no room."""
        torch = sys.modules["torch"]
        used = [
            index
            for index in range(torch.cuda.device_count())
            if torch.cuda.memory_reserved(index) > 0
        ]
        try:
            canary = self.canary(f"cuda:{used[0] if used else 0}")
            for _ in range(_CANARY_WARM_UP):
                canary()
        except RuntimeError:  # out of memory: the replay then takes a typical cost of a record
            return None
        return canary


def _timed(canary: Canary) -> tuple[int, int]:
    """Unix ns at which ``CANARY_RUNS`` runs began, and how long they took."""
    start_ns, begun_ns = time.time_ns(), time.monotonic_ns()
    for _ in range(CANARY_RUNS):
        canary()
    return start_ns, time.monotonic_ns() - begun_ns
