"""The process that reads the kernel's clocks of another process's threads until its stdin closes.

A process of its own, so that the interpreter lock of the measured one is untouched. One JSON
document on stdout at the end (``Document``); times are monotonic ns, which all processes of a host
share.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

COST_SHARE = 0.02
"""What this process may use of a core: with many threads it looks less often."""
CHILDREN_EVERY_S = 1.0
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_OURS = ("pytest_tokbudget.evidence", "py-spy")
_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL = range(8)


class Account:
    """The account of one thread (or, from ``stat`` alone, of one whole process)."""

    def __init__(self, folder: Path, pid: int, native_id: int, *, is_process: bool = False) -> None:
        self.row: dict[str, Any] = {
            "pid": pid,
            "native_id": native_id,
            "is_process": is_process,
            "times_ns": [],
            "cpu_ns": [],
            "core_wait_ns": [],
        }
        self._stat = os.open(folder / "stat", os.O_RDONLY)
        self._sched = -1
        if not is_process:  # the file of a process is that of its first thread alone
            with suppress(OSError):  # a kernel without that account
                self._sched = os.open(folder / "schedstat", os.O_RDONLY)
        text = os.pread(self._stat, 4096, 0).decode(errors="replace")
        self.row["name"] = text[text.index("(") + 1 : text.rindex(")")]
        self._begun = self._last = stat_ticks(text)[:2]

    def read(self) -> bool:
        """Add one reading; false when the thread has ended."""
        try:
            if self._sched >= 0:
                used, waited = os.pread(self._sched, 128, 0).split()[:2]
                now = time.monotonic_ns()
                self.row["core_wait_ns"].append(int(waited))
            else:
                text = os.pread(self._stat, 4096, 0).decode(errors="replace")
                now = time.monotonic_ns()
                self._last = stat_ticks(text)[:2]
                used = str(sum(self._last) * TICK_NS).encode()
        except (OSError, ValueError, IndexError):
            return False
        self.row["times_ns"].append(now)
        self.row["cpu_ns"].append(int(used))
        return True

    def close(self) -> dict[str, Any]:
        """Close the files and return the row."""
        with suppress(OSError, ValueError, IndexError):  # else what was read last stands
            self._last = stat_ticks(os.pread(self._stat, 4096, 0).decode(errors="replace"))[:2]
        user, system = (
            (last - first) * TICK_NS / 1e9 for first, last in zip(self._begun, self._last)
        )
        for one in (self._stat, self._sched):
            if one >= 0:
                os.close(one)
        return self.row | {"user_s": user, "system_s": system}


def stat_ticks(stat: str) -> list[int]:
    """User and system time in a ``stat`` of the kernel, then those of the children that it reaped;
    the name before them may hold blanks and brackets."""
    return [int(one) for one in stat[stat.rindex(")") + 2 :].split()[11:15]]


class Document(TypedDict):
    """``cores`` are the fields of ``CoreUse``."""

    threads: list[dict[str, Any]]
    cores: dict[str, float] | None


class CoreTimes(NamedTuple):
    """So far, in ticks: of the process tree, of its cores busy with anything, and idle."""

    tree: int
    busy: int
    idle: int


def core_times(pid: int, root: Path = Path("/proc")) -> CoreTimes | None:
    """Read them; ``None`` once the process has ended or where the kernel does not tell."""
    try:
        cores = {f"cpu{one}" for one in os.sched_getaffinity(pid)}
        lines = (root / "stat").read_text().splitlines()
        rows = [one.split() for one in lines if one.partition(" ")[0] in cores]
        sums = [sum(int(row[1 + at]) for row in rows) for at in range(_STEAL + 1)]
        tree = sum(_whole_ticks(root / str(one)) for one in (pid, *_descendants(pid)))
    except (OSError, ValueError, IndexError):
        return None
    idle = sums[_IDLE] + sums[_IOWAIT]
    return CoreTimes(tree, sum(sums) - idle, idle) if sum(sums) else None


def _whole_ticks(folder: Path) -> int:
    """Of a process with the threads that ended, and with the children that it reaped."""
    try:
        stat = (folder / "stat").read_text(errors="replace")
    except OSError:  # it ended while we were looking, and its parent has its time
        return 0
    return sum(stat_ticks(stat))


def core_use(begun: CoreTimes | None, ended: CoreTimes | None) -> dict[str, float] | None:
    """The fields of ``CoreUse`` between two readings."""
    if begun is None or ended is None:
        return None
    tree, busy, idle = (
        (last - first) * TICK_NS / 1e9 for first, last in zip(begun, ended, strict=True)
    )
    return {"tree_s": tree, "others_s": max(busy - tree, 0.0), "idle_s": idle}


class Sampler:
    """All threads of one process, and its descendants as wholes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._live: dict[tuple[int, bool], Account] = {}
        self._ended: list[dict[str, Any]] = []
        self._children_at = 0.0

    def look(self) -> None:
        """Read everything once."""
        self._discover(Path(f"/proc/{self._pid}/task"))
        if time.monotonic() - self._children_at >= CHILDREN_EVERY_S:
            self._children_at = time.monotonic()
            for child in _descendants(self._pid):
                self._add(Path(f"/proc/{child}"), child, child, is_process=True)
        for key, account in list(self._live.items()):
            if not account.read():
                self._ended.append(self._live.pop(key).close())

    def rows(self) -> list[dict[str, Any]]:
        """All accounts with a reading."""
        rows = self._ended + [one.close() for one in self._live.values()]
        return [one for one in rows if one["times_ns"]]

    def _discover(self, folder: Path) -> None:
        with suppress(OSError):  # the process has ended
            for task in folder.iterdir():
                self._add(task, self._pid, int(task.name))

    def _add(self, folder: Path, pid: int, native_id: int, *, is_process: bool = False) -> None:
        key = (native_id, is_process)
        if key in self._live or (is_process and _is_ours(pid)):
            return
        try:
            self._live[key] = Account(folder, pid, native_id, is_process=is_process)
        except (OSError, ValueError):  # it ended while we were looking
            return


def _descendants(pid: int) -> list[int]:
    import psutil

    try:
        return [one.pid for one in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _is_ours(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return True
    return any(one in command for one in _OURS)


def main(arguments: list[str] | None = None) -> None:
    """``--pid PID --interval-ms N``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--interval-ms", type=float, required=True)
    options = parser.parse_args(arguments)
    sampler = Sampler(options.pid)
    sampler.look()
    cores = core_times(options.pid)
    while True:
        began = time.thread_time()
        sampler.look()
        pause = max(options.interval_ms / 1e3, (time.thread_time() - began) / COST_SHARE)
        if select.select([sys.stdin], [], [], pause)[0]:
            break
    sampler.look()
    cores_s = core_use(cores, core_times(options.pid))
    json.dump(Document(threads=sampler.rows(), cores=cores_s), sys.stdout)


if __name__ == "__main__":
    main()
