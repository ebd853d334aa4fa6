"""The threads of this process with all three of their names: Python's, pthread's, the kernel's."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from pytest_tokbudget.analysis.timeline import ThreadInfo, Timeline
from pytest_tokbudget.analysis.trace_rows import KnownThread
from pytest_tokbudget.threads import native_id_of

_TASKS = Path("/proc/self/task")
_AUTOGRAD = re.compile(r"pt_autograd_(\d+)$")


def known_threads(roles: Mapping[int, str] | None = None) -> list[KnownThread]:
    """Return Python's threads, then the others that the kernel knows (autograd's among them).

    ``roles`` maps native ids to what their workers declared. Threads without Python have no ident.
    """
    roles = roles or {}
    kernels = dict(_native_threads())
    python = [
        _known(one, kernels.get(native_id_of(one), ""), roles) for one in threading.enumerate()
    ]
    ours = {one.native_id for one in python}
    others = [
        KnownThread(name, 0, native_id, python=False)
        for native_id, name in kernels.items()
        if native_id not in ours
    ]
    return python + others


def _known(thread: threading.Thread, kernels_name: str, roles: Mapping[int, str]) -> KnownThread:
    """One of Python's threads. An autograd thread is among them, as ``Dummy-1``, once a compiled
    backward pass has run Python in it; it works for another thread all the same."""
    ident, native_id = thread.ident or 0, native_id_of(thread)
    if _AUTOGRAD.search(kernels_name):
        return KnownThread(kernels_name, ident, native_id, python=False)
    return KnownThread(thread.name, ident, native_id, roles.get(native_id))


def merged(earlier: list[KnownThread], later: list[KnownThread]) -> list[KnownThread]:
    """Both tables, those of ``later`` first: a thread may have ended, or begun, in between."""
    seen = {one.native_id for one in later}
    return later + [one for one in earlier if one.native_id not in seen]


def _native_threads() -> list[tuple[int, str]]:
    found = []
    for task in _TASKS.glob("*"):
        try:
            found.append((int(task.name), (task / "comm").read_text().strip()))
        except OSError:  # it ended while we were looking
            continue
    return sorted(found)


def with_autograd_names(timeline: Timeline) -> Timeline:
    """Name the threads that only launched for one device after autograd's thread of that device.

    Without CPU operators a driver call carries only half a pthread ident, which for a thread that
    never ran Python nobody can look up; but autograd has one thread a device, and names it.
    """
    autograd = {
        int(match[1]): one
        for one in timeline.threads
        if not one.python and (match := _AUTOGRAD.search(one.name))
    }
    calls, events = timeline.host_calls, timeline.device_events
    table = list(timeline.threads)
    for index, thread in enumerate(table):
        if thread.native_id or thread.python:
            continue
        launched = np.isin(events.correlation, calls.correlation[calls.thread == index])
        devices = np.unique(events.device[launched]).tolist()
        if len(devices) == 1 and devices[0] in autograd:
            named = autograd.pop(devices[0])
            table[index] = ThreadInfo(named.native_id, named.name, named.role, python=False)
    return replace(timeline, threads=tuple(table))
