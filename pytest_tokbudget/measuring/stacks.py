"""What every thread is doing, for the message of a stalled pipeline."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterable

from ..threads import native_id_of
from .streams import Stream


def thread_stacks(streams: Iterable[Stream]) -> str:
    """Return the Python stacks of all threads but the caller's, workers first, innermost call last.

    Each is headed by the thread's name, native id, and its worker name and role if it has one.
    """
    workers = {stream.thread: stream for stream in streams if stream.alive}
    threads = {thread.ident: thread for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        if ident == threading.get_ident():
            continue
        thread, worker = threads.get(ident), workers.get(ident)
        name = "a thread unknown to Python" if thread is None else f"thread {thread.name!r}"
        native = "" if thread is None else f", native id {native_id_of(thread)}"
        role = "" if worker is None else f", worker {worker.name!r}, role {worker.role or 'none'}"
        stack = "".join(traceback.format_stack(frame))
        parts.append((worker is None, f"{name}{native}{role}\n{stack}"))
    parts.sort(key=lambda part: part[0])
    return "\n".join(text for _, text in parts) or "(no other thread is running)"
