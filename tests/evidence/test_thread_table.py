from __future__ import annotations

import _thread
import json
import subprocess
import sys
import threading
from pathlib import Path

from pytest_tokbudget.analysis.trace_rows import KnownThread
from pytest_tokbudget.evidence.thread_table import known_threads, merged, with_autograd_names
from tests.trace_builder import THREADS, TraceBuilder


def test_this_thread_has_all_its_names() -> None:
    me = threading.current_thread()
    found = next(one for one in known_threads({me.native_id or 0: "loader"}) if one.ident)
    by_id = {one.native_id: one for one in known_threads({me.native_id or 0: "loader"})}
    mine = by_id[threading.get_native_id()]
    assert (mine.name, mine.ident, mine.role) == (me.name, me.ident, "loader")
    assert found.python


FORKED = """
import json, os, threading
from pytest_tokbudget.evidence.thread_table import known_threads

def look():
    if os.fork():
        os.wait()
        return
    found = [one.native_id for one in known_threads() if one.python]
    print(json.dumps([found, threading.get_native_id()]), flush=True)
    os._exit(0)

look()
other = threading.Thread(target=look)
other.start()
other.join()
"""


def test_a_forked_process_knows_its_own_main_thread() -> None:
    """Every worker is one: its guard forks it."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        found, own = json.loads(line)
        assert found == [own]
    assert len(done.stdout.splitlines()) == 2


def test_threads_that_ended_meanwhile_are_kept() -> None:
    gone, stays = KnownThread("gone", 1, 11), KnownThread("stays", 2, 12)
    renamed = KnownThread("renamed", 2, 12)
    assert merged([gone, stays], [renamed]) == [renamed, gone]


def test_a_thread_that_launched_for_one_device_is_autograds_of_that_device() -> None:
    trace = TraceBuilder()
    trace.launch(0, 10, 5, thread=0x2CDC_B6C0, device=1)
    trace.launch(20, 30, 5, thread=0x2CDC_B6C1, device=0)
    trace.launch(40, 50, 5, thread=0x2CDC_B6C1, device=1)
    THREADS.append(KnownThread("pt_autograd_1", 0, 777, python=False))
    try:
        line = with_autograd_names(trace.timeline(0, 100))
    finally:
        THREADS.pop()
    names = {hex(0x2CDC_B6C0): "pt_autograd_1", hex(0x2CDC_B6C1): f"thread {0x2CDC_B6C1:#x}"}
    assert {line.threads[at].name for at in line.host_calls.thread} == set(names.values())
    assert 777 in {line.threads[at].native_id for at in line.host_calls.thread}


def test_an_autograd_thread_that_has_run_python_is_still_autograds() -> None:
    """A compiled backward pass runs Python in it, and Python then lists it as ``Dummy-1``."""
    named, done = threading.Event(), threading.Event()
    native_ids: list[int] = []

    def work() -> None:
        Path("/proc/thread-self/comm").write_text("pt_autograd_0")
        # Asked for itself, Python lists a thread that it did not start.
        native_ids.append(threading.current_thread().native_id or 0)
        named.set()
        done.wait()

    _thread.start_new_thread(work, ())
    named.wait()
    try:
        listed = [one for one in known_threads() if one.native_id in native_ids]
    finally:
        done.set()

    assert [(one.name, one.python) for one in listed] == [("pt_autograd_0", False)]
