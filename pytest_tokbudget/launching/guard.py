"""The guard: the small parent of each worker, which sees to it that nothing outlives a session.

The process that the launcher starts forks before anything heavy is imported. The child becomes the
worker, in a session and process group of its own. The parent, the guard, waits: for the worker to
end, for the controller to vanish, for a pipeline that no longer makes marks. Whichever comes first,
it ends the worker and all of its descendants.
"""

from __future__ import annotations

import contextlib
import enum
import faulthandler
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from .processes import adopt_orphans, die_with_parent, kill_descendants, signal_group, wait_until
from .progress import (
    ALLOWED_SILENCE_NS,
    ENDING,
    LAST_MARK_NS,
    RESULT_NS,
    WAIT_STATUS,
    WORKER_PID,
    ProgressBlock,
)

POLL_S = 1.0
"""How often the guard looks up unasked; an ended worker or controller wakes it at once."""
STALL_GRACE_NS = 5_000_000_000
"""Time for the worker's own watcher to speak first: it knows more."""
EXIT_GRACE_NS = 30_000_000_000
"""Time for a worker that has left its result to end: exit handlers, threads, device contexts."""
TERM_GRACE_S = 1.0
ABORT_GRACE_S = 3.0

CONTROL_FD = 0
"""The guard's end of the socket to the controller: its standard input."""


class Ending(enum.IntEnum):
    """Why the guard ended a worker."""

    NONE = 0
    CONTROLLER_GONE = 1
    STALLED = 2
    GUARD_TOLD = 3
    EXIT_HUNG = 4


def start_guarded(progress: ProgressBlock) -> None:
    """Fork: return in the worker; in its parent be the guard, and never return."""
    adopt_orphans()
    controller = os.getppid()
    guard = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    worker = os.fork()
    if worker == 0:
        _become_worker(guard)
        return
    try:
        _Guard(worker, controller, progress).watch()
    except BaseException:  # noqa: BLE001 - a fork must not return into its parent's code
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _become_worker(guard: int) -> None:
    """Leave the guard's session; die with the guard; hold nothing that keeps its socket open."""
    os.setsid()
    die_with_parent()
    if os.getppid() != guard:
        os._exit(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, CONTROL_FD)
    os.close(null)


class _Guard:
    def __init__(self, worker: int, controller: int, progress: ProgressBlock) -> None:
        self._worker = worker
        self._controller = controller
        self._slots = progress.slots
        self._slots[WORKER_PID] = worker
        self._told = False
        self._suspect_mark_ns: int | None = None
        self._wake_r, wake_w = os.pipe()
        os.set_blocking(self._wake_r, False)
        os.set_blocking(wake_w, False)
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._be_told)

    def watch(self) -> None:
        """Wait for an ending, and clean up."""
        try:
            ending = self._wait()
            if ending is not Ending.NONE:
                self._slots[ENDING] = ending
                self._end(ending)
        finally:
            self._clean_up()

    def _be_told(self, _number: int, _frame: FrameType | None) -> None:
        self._told = True

    def _wait(self) -> Ending:
        while not self._ended():
            if self._told:
                return Ending.GUARD_TOLD
            readable, _, _ = select.select([CONTROL_FD, self._wake_r], [], [], POLL_S)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_r, 512)
            if CONTROL_FD in readable or os.getppid() != self._controller:
                return Ending.CONTROLLER_GONE
            if self._stalled():
                return Ending.STALLED
            if self._exit_hangs():
                return Ending.EXIT_HUNG
        return Ending.NONE

    def _ended(self) -> bool:
        """Whether the worker has ended; its status then is in the block."""
        if self._slots[WAIT_STATUS]:
            return True
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == self._worker:
                self._slots[WAIT_STATUS] = status + 1
                return True
            if pid == 0:
                return False

    def _stalled(self) -> bool:
        """Whether no counting mark came for longer than allowed, seen twice in a row.

        The recorder sets the limit to 0 before it writes a new time, so a limit read before and
        after the time belongs to it.
        """
        allowed = self._slots[ALLOWED_SILENCE_NS]
        last = self._slots[LAST_MARK_NS]
        late = (
            allowed > 0
            and allowed == self._slots[ALLOWED_SILENCE_NS]
            and time.monotonic_ns() - last > allowed + STALL_GRACE_NS
        )
        confirmed = late and self._suspect_mark_ns == last
        self._suspect_mark_ns = last if late else None
        return confirmed

    def _exit_hangs(self) -> bool:
        done_ns = self._slots[RESULT_NS]
        return done_ns > 0 and time.monotonic_ns() - done_ns > EXIT_GRACE_NS

    def _end(self, ending: Ending) -> None:
        """Ask the worker to end; for a hang, let it leave its stacks."""
        if ending in (Ending.STALLED, Ending.EXIT_HUNG):
            _forbid_core_dump(self._worker)
            os.kill(self._worker, signal.SIGABRT)
            wait_until(self._ended, ABORT_GRACE_S)
        else:
            signal_group(self._worker, signal.SIGTERM)
            wait_until(self._ended, TERM_GRACE_S)

    def _clean_up(self) -> None:
        if not self._ended():
            os.kill(self._worker, signal.SIGKILL)
            wait_until(self._ended, ABORT_GRACE_S)
        killed = kill_descendants(self._worker)
        if killed:
            sys.stdout.write(f"tokbudget: ended what the test left running: {', '.join(killed)}\n")
            sys.stdout.flush()


def _wake(_number: int, _frame: FrameType | None) -> None:
    """A handler must exist for the wake-up descriptor to be written."""


def leave_stacks(path: Path) -> None:
    """Have a fatal signal write the Python stacks of all threads, with the GIL held or not."""
    # Left open on purpose: the handler writes to it when nothing else works any more.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    faulthandler.enable(file=descriptor, all_threads=True)


def _forbid_core_dump(pid: int) -> None:
    """The abort is ours: a core file of a training process may take minutes and fill the disk."""
    import resource

    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, hard))
