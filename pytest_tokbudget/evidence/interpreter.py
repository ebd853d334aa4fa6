"""The interpreter's lock: whether this build has one, how it is set, how long a wake waits."""

from __future__ import annotations

import sys
import sysconfig

import numpy as np

from pytest_tokbudget.records.cpu import Interpreter

from .beacon import Beacon


def read_interpreter(beacon: Beacon) -> Interpreter:
    """Describe the lock; ``beacon`` must have stopped."""
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    late = np.maximum(np.array(beacon.late_ns, np.int64), 0) / 1e6
    quantiles = (
        (float(np.median(late)), float(np.percentile(late, 95)), float(late.max()))
        if late.size
        else None
    )
    return Interpreter(
        free_threaded_build=free_threaded,
        gil_enabled=bool(enabled),
        switch_interval_ms=sys.getswitchinterval() * 1e3,
        wakes=int(late.size),
        wake_late_ms=quantiles,
        wake_core_ms=beacon.core_wait_ms,
    )
