"""The Protocols between the rooms. Concrete classes meet them only in ``entry/wiring.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from .records.base import Unavailable
from .records.baseline import Baseline, RefreshEntry, StoredSession
from .records.evidence import Evidence
from .records.launch import WorkerOutcome, WorkerSpec
from .records.machine import MachineClass
from .records.result import RunResult
from .records.workload import Workload


class Clock(Protocol):
    """Time as the package reads it."""

    def monotonic_ns(self) -> int:
        """Nanoseconds that never go back."""
        ...

    def unix_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        ...


class Devices(Protocol):
    """The devices a workload uses, as far as measuring must touch them."""

    def used(self) -> list[str]:
        """Names of the accelerator devices this process has used so far; empty on a CPU."""
        ...

    def synchronize(self, device: str | None = None) -> None:
        """Wait for all work queued on ``device``, or on every used device."""
        ...

    def reserved_bytes(self) -> int:
        """Device memory reserved by the allocators so far, summed; 0 on a CPU."""
        ...


class Pacer(Protocol):
    """Says when a workload of an A/B may step: only one of its two sides does at a time.

    Each call waits for as long as the other side has its turn. Raises ``MeasureError`` when the
    A/B was broken off.
    """

    def await_warm_up(self) -> None:
        """Wait until this side may warm up."""
        ...

    def next_block(self) -> int:
        """Say that this side stands still; return how many steps to make now, 0 for the end."""
        ...

    def warmed_up(self, step_ns: int) -> None:
        """Say that the warm-up is over; ``step_ns`` is the median step."""
        ...

    def block_done(self, steps: int, stepping_ns: int) -> None:
        """Say that ``steps`` steps were made, and how long they took together."""
        ...

    def cannot(self, reason: str) -> None:
        """Say that this workload cannot be held; never returns."""
        ...


class Instrument(Protocol):
    """One instrument setting of the evidence pass, which comes after the timing pass.

    ``name`` is its key in ``perturbation``. Its window holds at least ``steps`` counting steps of
    the workload and lasts at least ``least_s``, but is cut at ``most_s``; ``lead_in`` steps before
    it, and at least one, belong to nobody. With ``at_rest`` it may only begin and end while no
    worker is inside a step and the devices are idle. The window itself lies within: that of a step
    loop ends with idle devices where ``at_rest`` asks for it; that of a self-running pipeline is
    cut at counting marks without synchronizing, as its timing pass is, so work queued at either
    mark may lie across the cut.
    """

    @property
    def name(self) -> str:
        """``"stacks"``, ``"cuda"`` …."""
        ...

    @property
    def at_rest(self) -> bool:
        """Whether the workers must stand still at both ends."""
        ...

    @property
    def steps(self) -> int:
        """Steps wanted, of all counting workers together."""
        ...

    @property
    def least_s(self) -> float:
        """Seconds wanted."""
        ...

    @property
    def most_s(self) -> float:
        """Seconds after which the window ends, however few steps it has."""
        ...

    @property
    def lead_in(self) -> int:
        """Steps between ``begin`` and the window."""
        ...

    def begin(self) -> Unavailable | None:
        """Start; ``Unavailable`` says why it cannot be done here and now."""
        ...

    def end(self, running: str = "") -> None:
        """Stop and keep what was seen; nothing is computed yet. Called once after ``begin``.

        ``running`` names a worker that did not come to stand though ``at_rest`` asks for it.
        """
        ...


class Launcher(Protocol):
    """Runs one session in a fresh process."""

    def run(self, spec: WorkerSpec) -> WorkerOutcome:
        """Start a worker, wait for it, and return how it ended; never raises for a dead worker."""
        ...


class BaselineStore(Protocol):
    """Baselines of one directory. Updates are queued and written once, by ``flush``."""

    def load(self, workload: Workload, machine: MachineClass) -> Baseline | Unavailable:
        """Return the baseline; else ``Unavailable``, saying where it looked and what exists there.

        Raises ``StoreError`` for a file that exists and cannot be used.
        """
        ...

    def replace_anchor(
        self,
        workload: Workload,
        machine: MachineClass,
        sessions: list[StoredSession],
        entry: RefreshEntry,
        reference: Evidence | None = None,
    ) -> None:
        """Queue a new anchor, with the evidence of one of its sessions."""
        ...

    def append(
        self, workload: Workload, machine: MachineClass, sessions: list[StoredSession]
    ) -> None:
        """Queue sessions for the spread of an existing baseline."""
        ...

    def flush(self) -> list[Path]:
        """Write everything queued, each file atomically; return the files written."""
        ...


class Renderer(Protocol):
    """One output format."""

    def render(self, result: RunResult) -> str:
        """Return the text of ``result`` in this format."""
        ...
