"""py-spy beside a recording, and the beacon thread from which its clock is solved."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RATE_HZ = 100


def beacon_a(seconds: float) -> None:
    """One of the two functions between which the beacon alternates."""
    time.sleep(seconds)


def beacon_b(seconds: float) -> None:
    """The other one."""
    time.sleep(seconds)


class Stacks:
    """Samples this process from ``start`` to ``stop``; does nothing where py-spy is missing."""

    def __init__(self) -> None:
        self.log: list[tuple[int, int]] = []
        """Unix ns at which the beacon entered function 0 (``beacon_a``) or 1 (``beacon_b``)."""
        self.spawned_ns = 0
        self.said = ""
        self._ended = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._path = Path(tempfile.mkdtemp()) / "spy.json"

    def start(self, pid: int) -> None:
        """Start the beacon and py-spy."""
        program = _py_spy()
        if program is None:
            self.said = "py-spy not found"
            return
        threading.Thread(target=self._blink, name="tb-beacon", daemon=True).start()
        options = ["--nonblocking", "--idle", "--threads", "-f", "chrometrace"]
        self.spawned_ns = time.time_ns()
        self._process = subprocess.Popen(
            [program, "record", *options, "-r", str(RATE_HZ), "-p", str(pid), "-o", self._path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def stop(self) -> bytes | None:
        """End both; the chrometrace, or ``None`` where there is none."""
        self._ended.set()
        if self._process is None:
            return None
        self._process.send_signal(signal.SIGINT)
        try:
            self.said, _ = self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.said = "py-spy did not end within 30 s"
        return self._path.read_bytes() if self._path.exists() else None

    def _blink(self) -> None:
        state = 0
        pause = random.Random(3)
        while not self._ended.is_set():
            self.log.append((time.time_ns(), state))
            (beacon_b if state else beacon_a)(pause.uniform(0.02, 0.06))
            state = 1 - state


def _py_spy() -> str | None:
    """The program: on the path, beside the interpreter, or beside ``pip --target`` packages."""
    beside = [Path(sys.executable).parent, *(Path(one) / "bin" for one in sys.path if one)]
    found = (str(one / "py-spy") for one in beside if (one / "py-spy").exists())
    return shutil.which("py-spy") or next(found, None)
