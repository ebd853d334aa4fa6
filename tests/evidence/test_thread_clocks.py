from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_tokbudget.analysis.cpu_summary import cpu_pct
from pytest_tokbudget.evidence.thread_sampler import Account, Sampler, core_times, core_use
from pytest_tokbudget.evidence.threads import ThreadClockReader, pool_settings
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.cpu import ThreadClocks


def spin(over: threading.Event) -> None:
    while not over.is_set():
        sum(range(1000))


def sip(over: threading.Event) -> None:
    """About 0.2 % of a core: 40 µs of work in 20 ms."""
    while not over.wait(0.02):
        until = time.thread_time() + 40e-6
        while time.thread_time() < until:
            pass


@pytest.mark.alone
def test_a_thread_of_a_fifth_of_a_percent_among_twelve_busy_ones() -> None:
    over = threading.Event()
    threads = [threading.Thread(target=spin, args=(over,), name=f"busy {at}") for at in range(12)]
    small = threading.Thread(target=sip, args=(over,), name="small [x]; ü")
    for one in (*threads, small):
        one.start()
    reader = ThreadClockReader(interval_ms=50)
    reader.start()
    time.sleep(2.0)
    reader.stop()
    over.set()
    for one in (*threads, small):
        one.join()
    clocks = reader.record({small.native_id or 0: "drafter"})
    assert isinstance(clocks, ThreadClocks)
    found = {one.name: one for one in clocks.threads}
    share = cpu_pct(found["small [x]; ü"])
    assert share is not None
    assert 0 < share < 1.2
    assert found["small [x]; ü"].role == "drafter"
    busy = [cpu_pct(found[f"busy {at}"]) or 0.0 for at in range(12)]
    assert sum(busy) > 20 * share
    assert not any(one.name.startswith("tokbudget") for one in clocks.threads)


@pytest.mark.alone
def test_child_processes_are_accounted_and_ours_are_not() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    reader = ThreadClockReader(interval_ms=20)
    reader.start()
    time.sleep(1.0)
    reader.stop()
    child.kill()
    child.communicate()
    clocks = reader.record({})
    assert isinstance(clocks, ThreadClocks)
    (only,) = [one for one in clocks.threads if one.is_process]
    assert only.pid == child.pid
    assert only.cpu_ns[-1] > only.cpu_ns[0]


def test_a_reader_that_dies_is_told() -> None:
    reader = ThreadClockReader()
    reader.start()
    assert reader._process is not None
    reader._process.kill()
    reader.stop()
    found = reader.record({})
    assert isinstance(found, Unavailable)
    assert "died" in found.reason


def test_nothing_started_is_nothing_read() -> None:
    reader = ThreadClockReader()
    reader.stop()
    assert isinstance(reader.record({}), Unavailable)


def write_task(folder: Path, name: str, user: int, system: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["R", *["0"] * 10, str(user), str(system), *["0"] * 30]
    (folder / "stat").write_text(f"7 ({name}) {' '.join(fields)}")


def test_names_with_blanks_and_brackets_and_kernels_without_schedstat(tmp_path: Path) -> None:
    write_task(tmp_path / "7", "odd ) (name", 100, 50)
    account = Account(tmp_path / "7", 1, 7)
    assert account.read()
    write_task(tmp_path / "7", "odd ) (name", 120, 60)
    assert account.read()
    row = account.close()
    assert row["name"] == "odd ) (name"
    assert row["core_wait_ns"] == []
    assert row["cpu_ns"][1] - row["cpu_ns"][0] == 300_000_000
    assert (row["user_s"], row["system_s"]) == pytest.approx((0.2, 0.1))


def test_a_process_that_is_gone_has_no_rows() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    sampler = Sampler(done.pid)
    sampler.look()
    assert sampler.rows() == []


SHORT_LIVED = """
import os, subprocess, sys, threading, time
def burn():
    until = time.thread_time() + 0.02
    while time.thread_time() < until: pass
sys.stdin.readline()
begun = sum(os.times()[:4])
for _ in range(5):
    thread = threading.Thread(target=burn)
    thread.start(); thread.join()
    subprocess.run([sys.executable, "-c", "sum(range(1_000_000))"])
print(sum(os.times()[:4]) - begun, flush=True)
sys.stdin.readline()
"""


def test_threads_and_children_that_lived_between_two_looks_are_in_the_use_of_the_cores() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SHORT_LIVED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        begun = core_times(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        truth_s = float(child.stdout.readline())
        found = core_use(begun, core_times(child.pid))
        child.stdin.write(b"\n")
    assert found is not None
    assert found["tree_s"] == pytest.approx(truth_s, rel=0.2)


def test_a_kernel_that_keeps_no_account_of_its_cores(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n")
    assert core_times(os.getpid(), tmp_path) is None
    assert core_use(None, None) is None


def test_settings_of_thread_pools() -> None:
    found = pool_settings({"OMP_NUM_THREADS": "4", "PATH": "x"})
    assert found["OMP_NUM_THREADS"] == "4"
    assert "PATH" not in found
