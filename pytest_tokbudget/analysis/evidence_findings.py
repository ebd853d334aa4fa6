"""From the evidence of a session, and of its baseline, to what a person should look at first."""

from __future__ import annotations

from collections.abc import Mapping

from ..records.evidence import DeviceLedgerMs, Evidence
from ..records.result import Finding, TestResult
from .frame_growth import frame_findings, named_by_frames
from .growth import growth_findings, what_if_findings
from .sampled_costs import with_sampled_costs

MOST = 10

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

    With a device trace on both sides: what grew since the baseline, and what the stacks alone name
    of it; on one side alone: what the replay says of it. Where there is no device: the hot frames,
    and by how much they grew.
    """
    if now.causes is not None:
        if then is not None and then.causes is not None:
            grown = growth_findings(*with_sampled_costs(now.causes, then.causes, now, then))
            return named_by_frames(grown, now, then)[:MOST]
        return what_if_findings(now.causes)[:MOST]
    return frame_findings(now, then)[:MOST]


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


def counter_findings(changed: Mapping[str, tuple[float, float]]) -> list[Finding]:
    """Return a finding for each of ``changed``, name → (then, now) a step; increases first."""
    return [
        Finding(cause=f"counter: {name}", count_per_step=now, baseline_count_per_step=then)
        for name, (then, now) in sorted(changed.items(), key=lambda one: one[1][1] < one[1][0])
    ]


def has_evidence(result: TestResult) -> bool:
    """Whether an evidence pass was run; a changed counter is a finding without one too."""
    if result.sentences is not None:
        return True
    findings = result.findings
    return findings is not None and all(one.count_per_step is None for one in findings)


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
