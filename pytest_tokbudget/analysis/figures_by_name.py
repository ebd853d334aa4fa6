"""Figures of ``run.json`` by their names, so that an author can put a ceiling on any of them.

A name is the path to the figure (``"step_ms.p95"``, ``"devices.idle_pct"``, ``"counters.memsets"``,
``"devices.ledger.sync"``). Of devices, threads and queues the largest one is meant. The figures of
devices and the counters asked for most have short names too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import UsageError
from ..records.result import TestResult

FIGURES: Mapping[str, str] = {
    "step_ms.p50": "ms",
    "step_ms.p95": "ms",
    "step_ms.max": "ms",
    "stalled_pct": "%",
    "warmup_steps": "",
    "devices.idle_pct": "%",
    "devices.busy_ms_per_step": "ms",
    "threads.cpu_pct": "%",
    "queues.put_blocked_s": "s",
    "queues.get_blocked_s": "s",
    "queues.put_blocked_pct": "%",
    "queues.get_blocked_pct": "%",
    "queues.low_water_dips": "",
}
"""Name → the unit that run.json gives it in; ``""`` is a plain count."""

OPEN_FIGURES: Mapping[str, str] = {"devices.ledger.": "ms", "counters.": ""}
"""Beginnings of names that go on with the name of a cause or a counter."""

SHORT_NAMES: Mapping[str, str] = {
    "idle_pct": "devices.idle_pct",
    "busy_ms_per_step": "devices.busy_ms_per_step",
    "syncs_per_step": "counters.syncs",
    "peak_memory": "counters.peak_memory_bytes",
}

_SUM_OF = {"counters.syncs": "syncs_"}


def unit_of(name: str) -> str:
    """Return the unit of the figure ``name``. Raises ``UsageError`` naming the known figures."""
    full = SHORT_NAMES.get(name, name)
    if full in FIGURES:
        return FIGURES[full]
    for start, unit in OPEN_FIGURES.items():
        if full.startswith(start) and len(full) > len(start):
            return "bytes" if full.endswith("_bytes") else unit
    known = [*SHORT_NAMES, *FIGURES, *(f"{start}NAME" for start in OPEN_FIGURES)]
    raise UsageError(f"{name!r} is no figure of run.json; known are {', '.join(known)}")


def figure(result: TestResult, name: str) -> tuple[float | None, str]:
    """Return the figure ``name`` of ``result`` in its unit; ``None`` and the reason without it."""
    unit_of(name)
    full = SHORT_NAMES.get(name, name)
    field, _, rest = full.partition(".")
    holder = getattr(result, field)
    if holder is None:
        return None, result.unavailable.get(field, "it was not measured")
    if full in _SUM_OF:
        holder = {rest: _sum(holder, _SUM_OF[full])}
    values = [_value(one, rest) for one in (holder if isinstance(holder, list) else [holder])]
    known = [value for value in values if value is not None]
    # One unknown among several may be the largest.
    if not known or len(known) < len(values):
        # Busy and idle time come with the ledger, and share its reason.
        names = (rest, rest.partition(".")[0], *(("ledger",) if field == "devices" else ()), field)
        reasons = [result.unavailable[one] for one in names if one in result.unavailable]
        return None, reasons[0] if reasons else "it was not measured"
    return max(known), ""


def _value(holder: object, path: str) -> float | None:
    for part in filter(None, path.split(".")):
        holder = holder.get(part) if isinstance(holder, Mapping) else getattr(holder, part, None)
    return float(holder) if isinstance(holder, (int, float)) else None


def _sum(counters: Mapping[str, float], start: str) -> float | None:
    found = [count for name, count in counters.items() if name.startswith(start)]
    # A trace without any of them is a program that never did it; every trace counts memsets.
    return sum(found) if "memsets" in counters else None
