"""The explanation of a session that left no result."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from ..records.launch import WorkerSpec
from .guard import EXIT_GRACE_NS, Ending
from .memory import OomCounts, explain_kill, read_oom_counts
from .output import tail
from .progress import ENDING, WAIT_STATUS, WORKER_PID, ProgressBlock, phase_name
from .spec_file import SessionFiles

STACK_LINES = 400
STACK_BYTES = 1 << 16


@dataclass(frozen=True)
class Death:
    """How the worker and its guard ended: exit codes as ``subprocess`` gives them, ``-9`` being
    killed by SIGKILL; ``None`` for a worker whose end nobody saw."""

    worker: int | None
    guard: int
    ending: Ending

    @classmethod
    def of(cls, progress: ProgressBlock, guard: int) -> Death:
        """Read the guard's notes."""
        noted = progress.slots[WAIT_STATUS]
        worker = os.waitstatus_to_exitcode(noted - 1) if noted else None
        return cls(worker=worker, guard=guard, ending=Ending(progress.slots[ENDING]))


def describe_exit(code: int) -> str:
    """``"exited with status 3"`` or ``"was killed by SIGSEGV (Segmentation fault)"``."""
    if code >= 0:
        return f"exited with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    text = signal.strsignal(-code)
    return f"was killed by {name} ({text})" if text else f"was killed by {name}"


def explain_death(
    spec: WorkerSpec, death: Death, progress: ProgressBlock, oom_before: OomCounts
) -> str:
    """How the process ended, how far it had come, what its threads did, and its last output."""
    parts = [f"{spec.nodeid}: {_how(death, progress)}", _how_far(progress)]
    if death.worker == -signal.SIGKILL and death.ending is Ending.NONE:
        parts.append(explain_kill(oom_before, read_oom_counts()))
    files = SessionFiles.of(spec)
    stacks = tail(files.stacks, STACK_LINES, STACK_BYTES).strip()
    if stacks:
        parts.append(f"what its threads were doing:\n{stacks}")
    # A plugin that ends the process by itself, as a time-out does, leaves its stacks here.
    words = tail(files.terminal, STACK_LINES, STACK_BYTES).strip()
    for title, text in (("output", tail(files.log).strip()), ("words to the terminal", words)):
        if text:
            parts.append(f"its last {title}:\n{text}")
    return "\n\n".join(parts)


def _how(death: Death, progress: ProgressBlock) -> str:
    subject = "the measuring process"
    if death.ending is Ending.STALLED:
        moment = progress.snapshot()
        silence_s = (time.monotonic_ns() - moment.last_mark_ns) / 1e9
        return (
            f"{subject} hung and was ended: no step was completed for {silence_s:.0f} s, "
            f"{moment.allowed_silence_ns / 1e9:.0f} s are allowed"
        )
    if death.ending is Ending.EXIT_HUNG:
        return (
            f"{subject} was ended: it had nothing more to do and did not exit within "
            f"{EXIT_GRACE_NS / 1e9:.0f} s"
        )
    if death.ending is Ending.GUARD_TOLD:
        return f"{subject} was ended: its guard was told to stop by a signal"
    if death.worker is not None:
        return f"{subject} {describe_exit(death.worker)} before it left a result"
    if progress.slots[WORKER_PID] == 0:
        return f"{subject} could not be started: it {describe_exit(death.guard)}"
    return f"{subject} was ended: its guard {describe_exit(death.guard)}"


def _how_far(progress: ProgressBlock) -> str:
    moment = progress.snapshot()
    if moment.counting_marks == 0:
        return f"it had come to: {phase_name(moment.phase)}, no step completed"
    return f"it had come to: {phase_name(moment.phase)}, {moment.counting_marks} steps completed"
