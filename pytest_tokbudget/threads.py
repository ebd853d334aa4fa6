"""The native ids of Python's threads, as the kernel, a sampler and a trace know them."""

from __future__ import annotations

import os
import sys
import threading


def native_id_of(thread: threading.Thread) -> int:
    """Return the kernel's id of ``thread``, 0 before it has started.

    Before Python 3.13 a forked process's main thread still has the id of its parent's, and so has
    every worker, which its guard forks. On Linux a main thread's id is that of its process.
    """
    if sys.platform == "linux" and thread is threading.main_thread():
        return os.getpid()
    return thread.native_id or 0
