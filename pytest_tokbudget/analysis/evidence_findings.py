"""From the evidence of a session, and of its baseline, to what a person should look at first."""

from __future__ import annotations

from collections.abc import Iterator

from ..records.evidence import DeviceLedgerMs, Evidence
from ..records.result import Finding, FrameResult
from .growth import growth_findings, what_if_findings

MOST = 10
MOST_KEPT = 20
"""Hot frames that evidence keeps."""
LEAST_MS = 0.02
LEAST_SHARE_OF_STEP = 0.005
"""Of the growth of a hot frame: less is the sampler's own scatter."""

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
    before = dict(_costs(then)) if then is not None else {}
    # A frame below the coldest one that was kept cost at most as much as that one.
    unseen_ms = min(before.values(), default=0.0) if len(before) >= MOST_KEPT else 0.0
    costs = dict(_costs(now))
    least = max(LEAST_MS, LEAST_SHARE_OF_STEP * max(costs.values(), default=0.0))
    by_key: dict[tuple[str, str], list[FrameResult]] = {}
    for one in now.hot_frames:
        by_key.setdefault(_key(one), []).append(one)
    known = then is not None and bool(then.hot_frames)
    grown = {key: ms - before.get(key, unseen_ms) if known else ms for key, ms in costs.items()}
    for key, ms in sorted(grown.items(), key=lambda one: -one[1]):
        if ms < least:
            continue
        lines = by_key[key]
        frame = max(lines, key=lambda one: one.samples)
        yield Finding(
            cause=f"host: {frame.function}",
            thread=frame.threads[0] if len(frame.threads) == 1 else None,
            file=frame.file,
            line=frame.line,
            ms_per_step=costs[key],
            baseline_ms_per_step=before.get(key, 0.0) if known else None,
            delta_ms_per_step=ms if known else None,
            samples=sum(one.samples for one in lines),
            method="samples",
        )


def _costs(evidence: Evidence) -> Iterator[tuple[tuple[str, str], float]]:
    """What the lines of each function cost together, ms a step."""
    total: dict[tuple[str, str], float] = {}
    for frame, ms in zip(evidence.hot_frames, evidence.frames_ms):
        total[_key(frame)] = total.get(_key(frame), 0.0) + ms
    yield from total.items()


def _key(frame: FrameResult) -> tuple[str, str]:
    """Lines move, functions stay."""
    return frame.function, frame.file
