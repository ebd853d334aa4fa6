"""Sessions as baselines keep them, and the log of how their anchors moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis.canaries import medians_ms
from ..analysis.exact_counters import exact_counters
from ..analysis.spread import slowness
from ..analysis.stats import change_interval
from ..records.baseline import Baseline, RefreshEntry, StoredSession
from ..records.machine import MachineClass
from ..records.run import RunRecord
from ..records.workload import Workload
from .machine_class import ACCELERATOR_FIELDS, differing_fields


@dataclass(frozen=True)
class RefreshTerms:
    """On what terms a refresh runs.

    ``job`` names this invocation, ``today`` is an ISO date, ``wanted`` the number of counted
    sessions asked for.
    """

    reason: str
    job: str
    today: str
    wanted: int = 5
    allow_dirty: bool = False


def stored_session(run: RunRecord, job: str) -> StoredSession:
    """What a baseline keeps of one run."""
    timing, commit = run.timing, run.machine.commit
    differs = commit.dirty_paths or commit.untracked_modules
    return StoredSession(
        tok_s=timing.tok_s,
        tokens=timing.tokens.get(run.budget.token_kind),
        steps=timing.steps,
        seconds=(timing.end_ns - timing.start_ns) / 1e9,
        warmup_steps=run.warmup.steps,
        warmup_seconds=run.warmup.seconds,
        job=job,
        commit=f"{commit.sha}-dirty" if commit.sha and differs else commit.sha,
        host_hash=run.machine.host_hash,
        unix_s=(timing.end_ns + run.unix_offset_ns) // 1_000_000_000,
        software=run.machine.software,
        canaries_ms={key: float(f"{ms:.4g}") for key, ms in medians_ms(run.canaries).items()},
        usable_cores=run.machine.usable_cores,
        counters=exact_counters(run),
        **_conditions(run),
    )


def _conditions(run: RunRecord) -> dict[str, float | None]:
    """What of a session's conditions a later one is held against."""
    if run.conditions is None:
        return {}
    watch = run.conditions.watch
    capped = [
        device.reasons.get("software power cap", 0.0)
        for device in (watch.devices if watch else [])
        if device.throttled_share is not None
    ]
    return {
        "core_wait_share": _short(run.conditions.core_wait_share),
        "steal_share": _short(run.conditions.steal_share),
        "power_capped_share": max(capped, default=None),
    }


def _short(share: float | None) -> float | None:
    # The kernel's accounts can run backwards (a virtual machine that moved to another host), and
    # hold a wait that began before the session did.
    return None if share is None else round(min(1.0, max(0.0, share)), 4)


def log_entry(
    sessions: Sequence[StoredSession], *, old: Baseline | None, terms: RefreshTerms
) -> RefreshEntry:
    """One line of the refresh log; rates are geometric means, the change has a 99 % interval."""
    entry = RefreshEntry(
        date=terms.today,
        commit=sessions[0].commit,
        reason=terms.reason,
        new_tok_s=mean_tok_s(sessions),
    )
    return entry if old is None else against(entry, sessions, old)


def against(entry: RefreshEntry, sessions: Sequence[StoredSession], old: Baseline) -> RefreshEntry:
    """``entry`` with the change from ``old``'s anchor to ``sessions``."""
    change_pct, interval = change_interval(x_of(old.anchor), x_of(sessions))
    return RefreshEntry(
        date=entry.date,
        commit=entry.commit,
        reason=entry.reason,
        old_tok_s=mean_tok_s(old.anchor),
        new_tok_s=mean_tok_s(sessions),
        change_pct=change_pct,
        change_ci_pct=interval if all(math.isfinite(end) for end in interval) else None,
    )


def mean_tok_s(sessions: Sequence[StoredSession]) -> float:
    """The geometric mean of the sessions' rates, in tok/s: what their mean log rate stands for."""
    return math.exp(-math.fsum(x_of(sessions)) / len(sessions))


def like_for_like(
    old: Baseline | None, workload: Workload, machine: MachineClass
) -> Baseline | None:
    """``old`` where its figures may be compared with new ones, else None.

    They may not when the workload declares something else now, or a pool got other accelerators.
    """
    if old is None or old.workload.declaration != workload.declaration:
        return None
    found = differing_fields(old.machine_class, machine)
    return None if any(name in ACCELERATOR_FIELDS for name in found) else old


def x_of(sessions: Sequence[StoredSession]) -> list[float]:
    """X = −log tok/s of each session, as the statistics take it."""
    return [slowness(one.tok_s) for one in sessions]
