"""py-spy as a process: found, allowed to look, started, ended, and its refusals explained."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pytest_tokbudget.records.base import Unavailable

OPTIONS = ("--nonblocking", "--idle", "--threads", "--full-filenames", "-f", "chrometrace")
NATIVE_OPTIONS = ("--native", "--full-filenames", "-f", "speedscope")
"""py-spy takes ``--native`` only where it may pause the process. Threads that idle are left out, so
every sample must be kept: a chrometrace, which keeps changes, has them busy for ever."""
ENDS_WITHIN_S = 20.0
NICENESS = 5
_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)
_REFUSED = re.compile(r"permission denied|operation not permitted|EPERM|EACCES", re.IGNORECASE)
_COUNTS = re.compile(r"Samples: (\d+) Errors: (\d+)")
REMEDY = (
    "allow ptrace: in a container --cap-add SYS_PTRACE; under Yama "
    "sysctl kernel.yama.ptrace_scope=0; and not after prctl(PR_SET_DUMPABLE, 0)"
)

NATIVE_REMEDY = (
    "its wheels for x86-64 Linux can: pip install --force-reinstall py-spy; elsewhere leave "
    "--tokbudget-native out"
)


@dataclass(frozen=True, slots=True)
class SpyResult:
    """What py-spy left: the file it wrote, and thread × round samples and errors as it counted."""

    trace: bytes
    samples: int
    errors: int
    said: str


def find_pyspy() -> str | None:
    """The program: beside this interpreter, among its packages' scripts, else on the path."""
    places = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    places += [Path(one) / "bin" for one in sys.path if one]
    for place in places:
        program = place / "py-spy"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    return shutil.which("py-spy")


def allow_tracer(pid: int | None) -> None:
    """Let ``pid`` read this process under Yama (0: nobody, ``None``: whoever asks).

    A kernel without Yama knows no such setting and refuses it, which changes nothing.
    """
    setting = _ANY if pid is None else ctypes.c_ulong(pid)
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, setting, 0, 0, 0)


class PySpy:
    """One run of py-spy on ``pid``. ``start``, then ``stop`` exactly once; neither can hang."""

    def __init__(
        self, program: str, pid: int, rate_hz: float, options: Sequence[str] = OPTIONS
    ) -> None:
        self._program, self._pid, self._options = program, pid, options
        self._rate = max(1, round(rate_hz))
        self._process: subprocess.Popen[bytes] | None = None
        # Without names, so that nothing is left behind by a process that is killed.
        self._trace = tempfile.TemporaryFile()  # noqa: SIM115 - until ``stop``
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self.spawned_ns = 0

    def start(self) -> Unavailable | None:
        """Start it; whether it could attach shows later (``has_ended``)."""
        command = [self._program, "record", *self._options, "-r", str(self._rate)]
        command += ["-p", str(self._pid), "-o", f"/dev/fd/{self._trace.fileno()}"]
        allow_tracer(None)
        self.spawned_ns = time.monotonic_ns()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=subprocess.STDOUT,
                pass_fds=(self._trace.fileno(),),
            )
        except OSError as error:
            allow_tracer(0)
            self._close()
            return Unavailable(f"py-spy cannot be started: {error}", "pip install py-spy")
        allow_tracer(self._process.pid)
        # Where cores are short the program that is looked at goes first; a sampler that then comes
        # too late is noticed. One that has paused the program must not wait for a core.
        if "--nonblocking" in self._options:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)
        return None

    def wait_attached(self, seconds: float) -> None:
        """Wait until it has said that it samples, has ended, or ``seconds`` have passed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not (self.has_ended or self.has_attached):
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        """Its process id; only after a successful ``start``."""
        assert self._process is not None
        return self._process.pid

    @property
    def has_attached(self) -> bool:
        """Whether it has said that it samples."""
        return b"Sampling process" in _content(self._said)

    @property
    def has_ended(self) -> bool:
        """Whether it is no longer running, asked for or not."""
        return self._process is None or self._process.poll() is not None

    def stop(self) -> SpyResult | Unavailable:
        """End it, take what it wrote, and leave no process behind."""
        if self._process is None:
            return Unavailable("py-spy was not started")
        early = self._process.poll()
        if early is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        allow_tracer(0)
        said, trace = _content(self._said).decode(errors="replace"), _content(self._trace)
        self._close()
        if not trace:
            return _explained(self._process.returncode, early is not None, said)
        counts = _COUNTS.search(said)
        samples, errors = (int(counts[1]), int(counts[2])) if counts else (0, 0)
        return SpyResult(trace, samples, errors, said)

    def _close(self) -> None:
        self._trace.close()
        self._said.close()


def _content(file: IO[bytes]) -> bytes:
    """All of it; the position, which py-spy's output shares, stays where it is."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _explained(status: int, early: bool, said: str) -> Unavailable:
    """Why there is no trace."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"error|reason", line, re.IGNORECASE)]
    last = "; ".join(errors) or (lines[-1] if lines else "it said nothing")
    if _REFUSED.search(said):
        return Unavailable(f"py-spy may not look into this process: {last}", REMEDY)
    if "--native" in said:
        return Unavailable(f"this py-spy cannot unwind native stacks: {last}", NATIVE_REMEDY)
    if status < 0 and early:
        name = signal.Signals(-status).name
        return Unavailable(f"py-spy was killed by {name} while it sampled")
    if status < 0:
        return Unavailable(f"py-spy did not end within {ENDS_WITHIN_S:g} s and was killed")
    return Unavailable(f"py-spy ended with status {status} and left no stacks: {last}")
