"""Runs one session in a fresh process and says how it ended."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable

import msgspec

from ..errors import LaunchError
from ..records.launch import CapturedSection, WorkerOutcome, WorkerResult, WorkerSpec
from .autopsy import Death, describe_exit, explain_death
from .environment import worker_command, worker_environment
from .guard import ABORT_GRACE_S, TERM_GRACE_S, Ending
from .memory import read_oom_counts
from .output import OutputFollower, tail
from .processes import kill_marked, signal_group
from .progress import WORKER_PID, ProgressBlock, ProgressSnapshot, last_phase
from .spec_file import SessionFiles, read_result, write_spec

POLL_S = 0.25
"""How often progress and live output are looked at; the end of a worker wakes the launcher."""
STOP_S = TERM_GRACE_S + ABORT_GRACE_S
"""How long the guard may take to end a worker before the launcher does it by force."""


class ProcessLauncher:
    """Meets ``ports.Launcher`` with real processes.

    ``module`` is the dotted name of the module whose ``main()`` is the worker. ``on_progress`` is
    called a few times a second; ``on_output`` with all text that the worker's processes write to
    stdout and stderr, soon after they wrote it.
    """

    def __init__(
        self,
        module: str,
        *,
        on_progress: Callable[[ProgressSnapshot], None] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        self._module = module
        self._on_progress = on_progress
        self._on_output = on_output

    def run(self, spec: WorkerSpec) -> WorkerOutcome:
        """Start a worker, wait for it, and return how it ended; never raises for a dead worker.

        Whatever is raised meanwhile (Ctrl-C) ends the worker and all it started, and goes through.
        """
        began = time.monotonic()
        oom_before = read_oom_counts()
        try:
            session = _Session(self._module, spec)
        except OSError as error:
            return WorkerOutcome(
                result=None, failure=f"{spec.nodeid}: no worker could be started: {error}"
            )
        try:
            guard_code = session.wait(self._on_progress, self._on_output)
            death = Death.of(session.progress, guard_code)
            result, failure = _result(spec, death)
            if result is None and not failure:
                failure = explain_death(spec, death, session.progress, oom_before)
            return WorkerOutcome(
                result=result,
                failure=failure,
                came_to=last_phase(session.progress.snapshot().phase),
                exit_status=death.worker,
                log_tail=tail(SessionFiles.of(spec).log),
                wall_s=time.monotonic() - began,
            )
        finally:
            session.close()


def _result(spec: WorkerSpec, death: Death) -> tuple[WorkerResult | None, str]:
    """The result, with a note when its worker did not end well afterwards; or why it is unusable.

    A measurement that was completed and written is not undone by what happens at exit.
    """
    try:
        result = read_result(spec)
    except LaunchError as error:
        return None, f"{spec.nodeid}: {error}"
    if result is None or (death.ending is Ending.NONE and (death.worker or 0) >= 0):
        return result, ""
    how = "did not exit and was ended" if death.ending else describe_exit(death.worker or 0)
    note = CapturedSection(
        title="measuring process",
        text=f"after its result was written, the process {how}\n"
        f"{tail(SessionFiles.of(spec).stacks)}",
    )
    return msgspec.structs.replace(result, sections=[*result.sections, note]), ""


class _Session:
    """One started guard and its worker."""

    def __init__(self, module: str, spec: WorkerSpec) -> None:
        """Start the process. Raises OSError."""
        self._files = SessionFiles.of(spec)
        self._files.forget()
        self._cookie = uuid.uuid4().hex
        self.progress = ProgressBlock(spec.progress_path, create=True)
        self._control, guards = socket.socketpair()
        try:
            with guards, self._files.log.open("wb") as log:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    worker_command(module, spec),
                    stdin=guards.fileno(),
                    stdout=log,
                    stderr=log,
                    cwd=spec.cwd,
                    env=worker_environment(write_spec(spec), self._cookie),
                    start_new_session=True,
                )
        except BaseException:
            self._control.close()
            self.progress.close()
            raise

    def wait(
        self,
        on_progress: Callable[[ProgressSnapshot], None] | None,
        on_output: Callable[[str], None] | None,
    ) -> int:
        """Wait for the guard's end; return its exit code."""
        with contextlib.ExitStack() as stack:
            follower = None
            if on_output is not None:
                follower = OutputFollower(self._files.log, on_output)
                stack.callback(follower.close)
            while not select.select([self._control], [], [], POLL_S)[0]:
                if on_progress is not None:
                    on_progress(self.progress.snapshot())
                if follower is not None:
                    follower.pass_on()
            return self._process.wait()

    def close(self) -> None:
        """End what is left, at once where the session was interrupted; leave no zombie."""
        self._control.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode != 0:
            worker = self.progress.slots[WORKER_PID]
            if worker:
                signal_group(worker, signal.SIGKILL)
            kill_marked(self._cookie)
        self.progress.close()
