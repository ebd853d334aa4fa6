"""Where the rooms meet: the only place (with ``cli.py``) that knows the concrete classes.

Here is what a worker needs; ``services.py`` is the controller's part. Everything is imported inside
the functions: a worker that only measures loads no judge.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...records.budget import Budget
from ...records.evidence import Evidence
from ...records.machine import MachineRecord
from ...storing.workload_identity import CollectedTest, workload_of
from ..settings import Settings

__all__ = [
    "CollectedTest",
    "conditions",
    "evidence_pass",
    "machine",
    "measure_steps",
    "measured",
    "own_paths",
    "pacer",
    "recorder",
    "watch",
    "workload_of",
]

if TYPE_CHECKING:
    from ...evidence.conditions import ConditionsReader
    from ...measuring.measurement import Measured, Measurement
    from ...measuring.recorder import Recorder
    from ...ports import Pacer
    from .evidence import EvidencePass


def recorder(beat: memoryview | None) -> Recorder:
    """A recorder on the system's clock that writes its heartbeat to ``beat``."""
    from ...measuring.clock import SystemClock
    from ...measuring.recorder import Recorder

    return Recorder(SystemClock(), beat=beat)


def pacer(blocks: str) -> Pacer | None:
    """The end of the A/B's control channel ``blocks``; ``None`` outside one."""
    if not blocks:
        return None
    from ...launching.blocks import BlockClient

    return BlockClient(blocks)


def evidence_pass(
    marks: Recorder, rootdir: Path, *, explains: bool, counts: bool, native: bool
) -> EvidencePass:
    """The instruments of one session, and what computes their evidence."""
    from .evidence import EvidencePass

    return EvidencePass(marks, rootdir, explains=explains, counts=counts, native=native)


def measure_steps(
    step: Callable[[], object],
    marks: Recorder,
    budget: Budget,
    pacer: Pacer | None = None,
    evidence: EvidencePass | None = None,
) -> Measurement:
    """Measure one step after the other, on this process's devices and clock."""
    from ...measuring.clock import SystemClock
    from ...measuring.devices import TorchDevices
    from ...measuring.loop import measure_steps
    from ...measuring.paced_loop import Turns, measure_in_turn

    instruments = () if evidence is None else evidence.instruments
    if pacer is not None:
        return measure_in_turn(
            step, marks, budget, TorchDevices(), SystemClock(), Turns(pacer, instruments)
        )
    return measure_steps(step, marks, budget, TorchDevices(), SystemClock(), instruments)


def watch(
    pipeline: object,
    marks: Recorder,
    budget: Budget,
    pacer: Pacer | None = None,
    evidence: EvidencePass | None = None,
) -> Measurement:
    """Measure a pipeline that runs itself."""
    from ...measuring.clock import SystemClock
    from ...measuring.devices import TorchDevices
    from ...measuring.instrumented_watch import watch_with_instruments
    from ...measuring.paced_loop import Turns
    from ...measuring.paced_watch import watch_in_turn

    instruments = () if evidence is None else evidence.instruments
    if pacer is not None:
        return watch_in_turn(
            pipeline, marks, budget, TorchDevices(), SystemClock(), Turns(pacer, instruments)
        )
    return watch_with_instruments(
        pipeline, marks, budget, TorchDevices(), SystemClock(), instruments
    )


def measured(measurement: Measurement, evidence: Callable[[], Evidence] | None = None) -> Measured:
    """What the author sees of a measurement."""
    from ...measuring.measurement import Measured

    return Measured(measurement, evidence)


def conditions() -> ConditionsReader:
    """What reads the conditions of a session."""
    from ...evidence.conditions import ConditionsReader

    return ConditionsReader()


def machine(settings: Settings) -> MachineRecord:
    """The machine, its software, the checkout under test and what of it was imported by now."""
    from ...evidence.machine import read_machine

    return read_machine(
        settings.pool,
        rootdir=settings.rootdir,
        exclude=own_paths(settings),
        modules=dict(sys.modules),
    )


def own_paths(settings: Settings) -> tuple[Path, Path]:
    """Directories this package writes: changes in them are no changes of the measured code."""
    return settings.baselines, settings.report
