"""A worker module for the launcher's tests: the node id of the spec names what it does."""

from __future__ import annotations

import ctypes
import json
import multiprocessing.shared_memory
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pytest_tokbudget.launching import guard
from pytest_tokbudget.launching.blocks import BlockClient
from pytest_tokbudget.launching.progress import ProgressBlock
from pytest_tokbudget.launching.spec_file import SessionFiles, take_spec, write_result
from pytest_tokbudget.records.launch import WorkerResult, WorkerSpec

FLOOD_LINES = 40_000
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
DAEMONIZE = (
    "import os, sys, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "with open(sys.argv[1], 'w') as file: file.write(str(os.getpid()))\n"
    "os.rename(sys.argv[1], sys.argv[1] + '.pid')\n"
    "time.sleep(600)\n"
)


def main() -> int:
    """Behave as ``spec.nodeid`` says, guarded like every worker; the guard is less patient."""
    guard.POLL_S = 0.05
    guard.STALL_GRACE_NS = 50_000_000
    guard.EXIT_GRACE_NS = 50_000_000
    spec = take_spec()
    progress = ProgressBlock(spec.progress_path)
    guard.start_guarded(progress)
    guard.leave_stacks(SessionFiles.of(spec).stacks)
    return BEHAVIOURS[spec.nodeid](spec, progress)


def pass_(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    """Leave in the result what a test asks about."""
    seen = {
        "argv": sys.argv,
        "cwd": str(Path.cwd()),
        "environ": dict(os.environ),
        "flags": {"optimize": sys.flags.optimize},
        "own_session": os.getsid(0) == os.getpid(),
        "path": sys.path,
        "stdin": sys.stdin.read(),
        "subreaped_by": os.getppid(),
    }
    write_result(spec, WorkerResult(status="passed", longrepr=json.dumps(seen)))
    return 0


def exit_3(_spec: WorkerSpec, _progress: ProgressBlock) -> int:
    print("last words")
    sys.stdout.flush()
    os._exit(3)


def system_exit(_spec: WorkerSpec, _progress: ProgressBlock) -> int:
    raise SystemExit(4)


def raise_(_spec: WorkerSpec, _progress: ProgressBlock) -> int:
    raise LookupError("no such model")


def segfault(_spec: WorkerSpec, progress: ProgressBlock) -> int:
    progress.slots[2] = 57
    progress.slots[3] = 2
    ctypes.string_at(0)
    return 0


def sigkill(_spec: WorkerSpec, _progress: ProgressBlock) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def _allow_silence(progress: ProgressBlock) -> None:
    progress.slots[0] = time.monotonic_ns()
    progress.slots[2] = 12
    progress.slots[3] = 2
    progress.slots[1] = 1_000_000


def hang_with_gil(_spec: WorkerSpec, progress: ProgressBlock) -> int:
    _allow_silence(progress)
    ctypes.PyDLL(None).sleep(600)
    return 0


def hang_in_python(_spec: WorkerSpec, progress: ProgressBlock) -> int:
    threading.Thread(target=wait_for_a_batch, daemon=True).start()
    _allow_silence(progress)
    while True:
        time.sleep(0.01)


def wait_for_a_batch() -> None:
    threading.Event().wait()


def hang_at_exit(spec: WorkerSpec, progress: ProgressBlock) -> int:
    write_result(spec, WorkerResult(status="passed"))
    threading.Thread(target=wait_for_a_batch).start()
    progress.slots[7] = time.monotonic_ns()
    return 0


def crash_at_exit(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    write_result(spec, WorkerResult(status="passed"))
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def broken_result(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    Path(spec.result_path).write_text('{"status": "pas')
    return 0


def flood(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    for number in range(FLOOD_LINES):
        print(f"line {number} ä")
    write_result(spec, WorkerResult(status="passed"))
    return 0


def marks(spec: WorkerSpec, progress: ProgressBlock) -> int:
    """Make progress until it was seen."""
    progress.slots[3] = 1
    while not (Path(spec.cwd) / "seen").exists():
        progress.slots[2] += 1
        time.sleep(0.01)
    write_result(spec, WorkerResult(status="passed"))
    return 0


def _start_children(spec: WorkerSpec) -> list[int]:
    """A plain child, and a grandchild that has left the session and process group."""
    sleeper = subprocess.Popen(SLEEPER)
    pid_file = Path(spec.cwd) / "daemon"
    subprocess.run([sys.executable, "-c", DAEMONIZE, str(pid_file)], check=True)
    noted = pid_file.with_suffix(".pid")
    while not noted.exists():
        time.sleep(0.01)
    return [sleeper.pid, int(noted.read_text())]


def forget_children(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    write_result(spec, WorkerResult(status="passed", longrepr=json.dumps(_start_children(spec))))
    return 0


def forget_and_crash(spec: WorkerSpec, progress: ProgressBlock) -> int:
    (Path(spec.cwd) / "children").write_text(json.dumps(_start_children(spec)))
    return segfault(spec, progress)


def leak_shared_memory(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=64)
    (Path(spec.cwd) / "shared").write_text(block.name)
    os._exit(3)


def wait_for_the_end(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    """Say who is there, then wait."""
    pids = {"guard": os.getppid(), "worker": os.getpid(), "children": _start_children(spec)}
    path = Path(spec.cwd) / "pids"
    path.with_suffix(".part").write_text(json.dumps(pids))
    path.with_suffix(".part").rename(path)
    while True:
        time.sleep(0.05)


def ignore_the_end(spec: WorkerSpec, progress: ProgressBlock) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return wait_for_the_end(spec, progress)


def paced(spec: WorkerSpec, _progress: ProgressBlock) -> int:
    """Half of a pair whose background thread never rests."""
    client = BlockClient(spec.blocks)
    threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
    client.await_warm_up()
    client.warmed_up(10_000_000)
    while steps := client.next_block():
        client.block_done(steps, 10_000_000)
    write_result(spec, WorkerResult(status="passed"))
    os._exit(0)


BEHAVIOURS: dict[str, Callable[[WorkerSpec, ProgressBlock], int]] = {
    "pass": pass_,
    "exit_3": exit_3,
    "system_exit": system_exit,
    "raise": raise_,
    "segfault": segfault,
    "sigkill": sigkill,
    "hang_with_gil": hang_with_gil,
    "hang_in_python": hang_in_python,
    "hang_at_exit": hang_at_exit,
    "crash_at_exit": crash_at_exit,
    "broken_result": broken_result,
    "flood": flood,
    "paced": paced,
    "marks": marks,
    "forget_children": forget_children,
    "forget_and_crash": forget_and_crash,
    "leak_shared_memory": leak_shared_memory,
    "wait_for_the_end": wait_for_the_end,
    "ignore_the_end": ignore_the_end,
}
