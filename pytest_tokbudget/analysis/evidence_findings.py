"""From the evidence of a session, and of its baseline, to what a person should look at first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot, sqrt
from typing import TypeAlias

from ..records.evidence import DeviceLedgerMs, Evidence
from ..records.result import Finding, FrameResult
from .cpu_summary import MOST_FRAMES
from .growth import growth_findings, what_if_findings

MOST = 10
MOST_KEPT = MOST_FRAMES
"""Hot frames that evidence keeps."""
LEAST_MS = 0.02
SCATTER = 2.0
"""Standard errors that a hot frame must have grown by: less is the sampler's own scatter."""

_NUMBER = re.compile(r"[-_ ]?\d+")
_Key: TypeAlias = "tuple[str, str, str, str]"

GATING = (
    "kernel_launches",
    "graph_launches",
    "syncs_",
    "copies_",
    "copy_bytes_",
    "memsets",
    "recompilations",
)
"""Counters that are exact, so that any change of them is one of the program."""

LEAST_CHANGE = 0.005
"""Of an exact counter, a step: less is the cut of the window."""


def rank_findings(now: Evidence, then: Evidence | None) -> list[Finding]:
    """Rank what costs most, at most ten.

    With a device trace on both sides: what grew since the baseline; on one side alone: what the
    replay says of it. Where there is no device: the hot frames, and by how much they grew.
    """
    if now.causes is not None:
        if then is not None and then.causes is not None:
            return growth_findings(now.causes, then.causes)[:MOST]
        return what_if_findings(now.causes)[:MOST]
    return list(_host_findings(now, then))[:MOST]


def changed_counters(now: Evidence, then: Evidence | None) -> dict[str, tuple[float, float]]:
    """Return exact counters that differ, name → (then, now) a step; those of one side alone too."""
    if then is None:
        return {}
    traced = now.causes is not None and then.causes is not None
    # Without a trace on both sides only what the host counts can be compared.
    names = sorted(
        {*now.counters, *then.counters} if traced else {*now.counters} & {*then.counters}
    )
    pairs = {name: (then.counters.get(name, 0.0), now.counters.get(name, 0.0)) for name in names}
    return {
        name: (old, new)
        for name, (old, new) in pairs.items()
        if name.startswith(GATING) and abs(new - old) > LEAST_CHANGE * max(1.0, old)
    }


def ledger_difference(now: DeviceLedgerMs, then: DeviceLedgerMs) -> dict[str, float]:
    """Return row → ms a step more than then; the values sum to the slow-down of the step."""
    names = dict.fromkeys((*now.rows_ms, *then.rows_ms))
    return {name: now.rows_ms.get(name, 0.0) - then.rows_ms.get(name, 0.0) for name in names}


def ledger_changes(now: Evidence, then: Evidence | None) -> dict[str, dict[str, float]]:
    """Return device → row → ms a step more than then, of devices with a ledger on both sides."""
    before = {one.device: one for one in then.ledgers} if then is not None else {}
    return {
        one.device: ledger_difference(one, before[one.device])
        for one in now.ledgers
        if one.device in before
    }


def _host_findings(now: Evidence, then: Evidence | None) -> Iterator[Finding]:
    costs, before = _costs(now), _costs(then) if then is not None else {}
    known = bool(before)
    # A frame below the coldest one that was kept cost at most as much as that one.
    unseen_ms = min((one.ms for one in before.values()), default=0.0)
    most_unseen_ms = unseen_ms if len(before) >= MOST_KEPT else 0.0
    found = []
    for key, cost in costs.items():
        old = before.get(key)
        grown_ms = cost.ms - (old.ms if old else most_unseen_ms)
        scatter_ms = SCATTER * hypot(cost.error_ms, old.error_ms if old else 0.0)
        if grown_ms >= max(LEAST_MS, scatter_ms if known else 0.0):
            found.append((grown_ms, cost, old))
    for grown_ms, cost, old_cost in sorted(found, key=lambda one: -one[0]):
        frame = cost.hottest
        assert frame is not None
        yield Finding(
            cause=f"host: {frame.function}" + (f" from {frame.caller}" if frame.caller else ""),
            thread=frame.threads[0] if len(frame.threads) == 1 else None,
            file=frame.file,
            line=frame.line,
            ms_per_step=cost.ms,
            baseline_ms_per_step=(old_cost.ms if old_cost else 0.0) if known else None,
            delta_ms_per_step=grown_ms if known else None,
            samples=cost.samples,
            method="samples",
        )


@dataclass(frozen=True, slots=True)
class _Cost:
    """What the lines of one function cost together, ms a step, and the hottest of them."""

    ms: float
    samples: int
    hottest: FrameResult | None

    @property
    def error_ms(self) -> float:
        """One standard error: counts of samples scatter as Poisson's."""
        return self.ms / sqrt(max(self.samples, 1))


def _costs(evidence: Evidence) -> dict[_Key, _Cost]:
    costs: dict[_Key, _Cost] = {}
    for frame, ms in zip(evidence.hot_frames, evidence.frames_ms):
        old = costs.get(_key(frame), _Cost(0.0, 0, None))
        hotter = old.hottest is None or frame.samples > old.hottest.samples
        costs[_key(frame)] = _Cost(
            old.ms + ms, old.samples + frame.samples, frame if hotter else old.hottest
        )
    return costs


def _key(frame: FrameResult) -> _Key:
    """Lines move, functions stay; what moves from one kind of thread to another is a change."""
    caller = (frame.caller or "").rpartition(":")[0]
    kind = _NUMBER.sub("", frame.threads[0]) if frame.threads else ""
    return frame.function, frame.file, caller, kind
