"""The ledger people read: a device's step as measured, its idle time priced by the replay.

The traced window is partitioned exactly (``ledger.py``), but its idle time is partly the tracer's
own. Kernel time is not: a trace changes it by less than 1 %. So here busy time comes from the
trace, the step from the timing pass, and idle time is what lies between.
"""

from __future__ import annotations

from math import fsum

from ..records.causes import CauseMs, CauseTable, DeviceMs
from ..records.evidence import DeviceLedgerMs
from .causes import BUSY, Cause, cause_title
from .ledger import DeviceLedger
from .replay_cause import ReplayCause
from .timeline import device_label

UNEXPLAINED = "idle: unexplained"
"""Idle time that no row accounts for."""

LEAST_MS = 0.001
_OF_THE_DEVICE = (ReplayCause.SPACING.value, ReplayCause.BUSY.value)


def device_ledger(traced: DeviceLedger, table: CauseTable | None, step_ms: float) -> DeviceLedgerMs:
    """Return the measured ledger of one device; its rows sum to ``step_ms``.

    ``table`` is ``None`` where nothing could be replayed: then all idle time but the spacing of
    queued kernels is unexplained. What the replay blames beyond the measured idle time lay behind
    kernels (several threads share a device): its rows then share the idle time in proportion.
    """
    steps, device = traced.window.steps, device_label(traced.device)
    rows = {cause_title(one): traced.ns(one) / 1e6 / steps for one in BUSY}
    busy_ms = fsum(rows.values())
    found = _of_device(table, device)
    spacing_ms = traced.ns(Cause.SPACING) / 1e6 / steps if found is None else found.spacing_ms
    rows[cause_title(Cause.SPACING)] = min(spacing_ms, max(step_ms - busy_ms, 0.0))
    rows |= _idle_rows(table, device, step_ms - fsum(rows.values()))
    rows = {name: ms for name, ms in rows.items() if abs(ms) >= LEAST_MS}
    rows[UNEXPLAINED] = step_ms - fsum(rows.values())
    return DeviceLedgerMs(
        device=device,
        step_ms=step_ms,
        busy_ms=busy_ms,
        rows_ms=rows,
        traced_ms=traced.ms_per_step(),
    )


def _idle_rows(table: CauseTable | None, device: str, idle_ms: float) -> dict[str, float]:
    """Causes of idle time by row, together no more than there was."""
    rows: dict[str, float] = {}
    for cause in table.causes if table is not None else []:
        if cause.what_if_ms is not None and _concerns(cause, device):
            name = row_name(cause)
            rows[name] = rows.get(name, 0.0) + max(cause.what_if_ms, 0.0)
    blamed_ms = fsum(rows.values())
    share = min(1.0, max(idle_ms, 0.0) / blamed_ms) if blamed_ms > 0 else 1.0
    return {name: share * ms for name, ms in rows.items()}


def row_name(cause: CauseMs) -> str:
    """How a row of idle time is called: the cause, and the function where it has one."""
    name = f"{cause.cause}: {cause.function}" if cause.function else cause.cause
    return f"idle: {name}"


def _of_device(table: CauseTable | None, device: str) -> DeviceMs | None:
    found = (one for one in (table.devices if table else []) if one.device == device)
    return next(found, None)


def _concerns(cause: CauseMs, device: str) -> bool:
    if cause.cause in _OF_THE_DEVICE:
        return False
    return not cause.devices or device in cause.devices
