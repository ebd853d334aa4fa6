"""Ends processes, with all that they started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
"""From ``linux/prctl.h``."""

LEAVE_GRACE_S = 0.5

COOKIE_VARIABLE = "TOKBUDGET_SESSION"
"""Inherited by everything a worker starts, so that it can be found when its parents are gone."""


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that forked it ends (Linux only)."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (Linux only)."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def all_stopped(pid: int) -> bool:
    """Whether no thread of process ``pid`` runs: each is stopped by a signal, or has ended."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/stat"))
        return all(_state(task) in "TtZX" for task in tasks)
    except OSError:
        return True


def _state(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[0]


def wait_until(condition: Callable[[], bool], seconds: float, poll_s: float = 0.01) -> bool:
    """Whether ``condition`` came true within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(poll_s)
    return True


def kill_descendants(group: int, within_s: float = 3.0) -> list[str]:
    """Kill all that is left below this process and in ``group``, reap it, and return what it was.

    First they may leave by themselves for ``LEAVE_GRACE_S``: multiprocessing's resource tracker
    frees the shared memory of a dead worker, and must not be killed before it did.
    Children of killed processes become this process's own (``adopt_orphans``), so the walk is
    repeated until none is left. The returned lines read ``"python (pid 123)"``.
    """
    if _reap():
        signal_group(group, signal.SIGKILL)
        return []
    import psutil

    own = psutil.Process()
    wait_until(lambda: not _remaining(own), LEAVE_GRACE_S)
    killed: dict[int, str] = {}
    end = time.monotonic() + within_s
    while True:
        left = _remaining(own)
        for process in left:
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    killed.setdefault(process.pid, f"{process.name()} (pid {process.pid})")
                    process.kill()
        signal_group(group, signal.SIGKILL)
        if not left or time.monotonic() > end:
            return list(killed.values())
        time.sleep(0.01)


def _remaining(own: psutil.Process) -> list[psutil.Process]:
    """The descendants that are left once those that have ended are collected."""
    _reap()
    return own.children(recursive=True)


def _reap() -> bool:
    """Collect every child that has ended; return whether no child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def kill_marked(cookie: str) -> list[str]:
    """Kill every process of this user whose environment carries ``cookie``; return what it was.

    The last resort, when the guard itself was killed and its descendants have new parents.
    """
    import psutil

    killed = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(COOKIE_VARIABLE) == cookie:
                killed.append(f"{process.name()} (pid {process.pid})")
                process.kill()
    return killed
