"""What the workers of a pipeline run; simulated and real devices both provide it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .config import Size
from .disturbances import StepLog
from .knobs import Knobs
from .recording import Recorder


@dataclass(frozen=True)
class Trained:
    """A drafter's step: ``tokens`` by kind; ``loss`` in nats, ``None`` where it was not read."""

    tokens: Mapping[str, int]
    loss: float | None = None


class TargetStage(Protocol):
    """One target worker's work. ``post`` may run in another thread than ``compute``."""

    device: str

    def warm(self) -> None:
        """Compile and run once, while no other worker runs."""
        ...

    def compute(self, index: int) -> Any:
        """Pack batch ``index`` and run the frozen target on it."""
        ...

    def post(self, computed: Any) -> Any:
        """Pack, cast and copy the hidden states to the host: an item for the queue."""
        ...


class DrafterStage(Protocol):
    """One drafter worker's work."""

    device: str

    def warm(self, item: Any) -> None:
        """Compile and run once on ``item``, while no other worker runs."""
        ...

    def train(self, item: Any, step: int) -> Trained:
        """Take one optimizer step on ``item``; ``step`` counts this worker's from 1."""
        ...


@dataclass(frozen=True)
class Workshop:
    """What both kinds of stages are made from."""

    size: Size
    knobs: Knobs
    recorder: Recorder
    log: StepLog


def build_stages(workshop: Workshop) -> tuple[list[TargetStage], list[DrafterStage]]:
    """Return the stages of all workers, targets and drafters, not yet warm."""
    if workshop.size.timing is not None:
        from .simulated import build_simulated

        return build_simulated(workshop, workshop.size.timing)
    from .training import build_real

    return build_real(workshop)
