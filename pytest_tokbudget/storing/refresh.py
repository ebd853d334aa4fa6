"""What may become a baseline, and what may widen one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from ..analysis.exact_counters import exact_counters, with_zeros
from ..analysis.spread import slowness
from ..analysis.stats import slow_outliers
from ..errors import RefreshRefusedError
from ..records.baseline import Baseline, RefreshEntry, StoredSession
from ..records.evidence import Evidence
from ..records.run import RunRecord
from .machine_class import describe_differences, differing_fields, machine_class
from .noise import check_noise
from .reference import reference_of
from .refresh_log import RefreshTerms, like_for_like, log_entry, stored_session

FEWEST_SESSIONS = 3
"""Fewer give no spread worth the name, and the judge gives no verdict on them."""

MOST_SET_ASIDE = 2
"""Slow sessions that a refresh may replace; with more the host, not the session, is slow."""


@dataclass(frozen=True)
class Proposal:
    """What a refresh would store.

    ``sessions`` are the new anchor; ``set_aside`` the indices of the runs left out as slow;
    ``replacements_needed`` how many more runs to measure before this may be stored (then propose
    again with all runs). ``note`` is a sentence for the person, ``""`` where there is none;
    ``reference`` the evidence of the first kept run that has any.
    """

    sessions: list[StoredSession]
    entry: RefreshEntry
    set_aside: list[int] = field(default_factory=list)
    replacements_needed: int = 0
    note: str = ""
    reference: Evidence | None = None


def propose_anchor(
    runs: Sequence[RunRecord], *, old: Baseline | None, terms: RefreshTerms
) -> Proposal:
    """Turn the runs of one refresh, all of them, into a new anchor.

    ``old`` is the baseline that it replaces. A run slower than the others by a one-sided 0.1 %
    Student test is set aside, at most two. Raises RefreshRefusedError, saying why: fewer than three
    runs, runs that differ in what they measured or where, uncommitted changes, an unsteady run, one
    that counted no tokens, too many slow ones, or a spread too wide for the tolerance.
    """
    if len(runs) < FEWEST_SESSIONS:
        raise RefreshRefusedError(
            f"{len(runs)} sessions measured, a baseline needs at least {FEWEST_SESSIONS}; "
            f"ask for more (--tokbudget-sessions {FEWEST_SESSIONS} or more)"
        )
    _refuse_unlike(runs)
    _refuse_dirty(runs, terms)
    for index, run in enumerate(runs):
        flaw = flaw_of(run)
        if flaw:
            raise RefreshRefusedError(f"session {index + 1} of {len(runs)}: {flaw}")
    set_aside = sorted(slow_outliers([slowness(run.timing.tok_s) for run in runs]))
    if len(set_aside) > MOST_SET_ASIDE:
        rates = ", ".join(f"{run.timing.tok_s:,.0f}" for run in runs)
        raise RefreshRefusedError(
            f"{len(set_aside)} of {len(runs)} sessions are slower than the others ({rates} tok/s); "
            f"at most {MOST_SET_ASIDE} may be set aside: find out what else this machine is doing"
        )
    kept = [run for index, run in enumerate(runs) if index not in set_aside]
    sessions = _with_zeros([stored_session(run, terms.job) for run in kept])
    missing = max(0, max(terms.wanted, FEWEST_SESSIONS) - len(kept))
    like = like_for_like(old, runs[0].workload, machine_class(runs[0].machine))
    note = "" if missing else check_noise(sessions, runs[0].budget, old)
    return Proposal(
        sessions=sessions,
        entry=log_entry(sessions, old=like, terms=terms),
        set_aside=set_aside,
        replacements_needed=missing,
        note=note,
        reference=reference_of(kept),
    )


def append_sessions(
    runs: Sequence[RunRecord], *, old: Baseline | None, terms: RefreshTerms
) -> list[StoredSession]:
    """Return every fit session of ``runs``, slow ones too, to widen what ``old`` knows.

    Leaving out the slow ones would narrow the spread, and later call unchanged code slower. Raises
    RefreshRefusedError without a baseline, with uncommitted changes, for another declaration than
    the baseline's, or where no session is fit.
    """
    if old is None:
        raise RefreshRefusedError(
            "there is no baseline to append to; make one with --tokbudget-refresh REASON"
        )
    _refuse_unlike(runs)
    _refuse_dirty(runs, terms)
    if like_for_like(old, runs[0].workload, machine_class(runs[0].machine)) is None:
        raise RefreshRefusedError(
            f"{runs[0].workload.identity} now declares another workload than its baseline, or runs "
            "on other hardware; its sessions cannot be appended (--tokbudget-refresh REASON)"
        )
    return _fit(runs, terms)


def candidate(runs: Sequence[RunRecord], *, terms: RefreshTerms) -> Baseline:
    """The baseline that the fit ones of these runs would make: to look at, or to move by hand.

    It may have fewer sessions than a verdict needs, and is then refused among the baselines. Raises
    RefreshRefusedError if none is fit.
    """
    sessions = _fit(runs, terms)
    return Baseline(
        workload=runs[0].workload,
        machine_class=machine_class(runs[0].machine),
        token_kind=runs[0].budget.token_kind,
        anchor=sessions,
        reference=reference_of(runs),
        log=[log_entry(sessions, old=None, terms=terms)],
    )


def flaw_of(run: RunRecord) -> str:
    """Why this run cannot be stored; ``""`` where it can."""
    kind = run.budget.token_kind
    tokens, rate = run.timing.tokens.get(kind, 0), run.timing.tok_s
    if tokens <= 0 or not math.isfinite(rate) or rate <= 0:
        return f"no tokens of kind {kind!r} were counted in the timing pass ({rate} tok/s)"
    if not run.warmup.steady:
        return f"no steady state in {run.warmup.steps} steps: {run.warmup.reason}"
    untraced = exact_counters(run).untraced if run.budget.counters == "fail" else ""
    return untraced and f"its counters are to gate, and its devices were not traced: {untraced}"


def _with_zeros(sessions: list[StoredSession]) -> list[StoredSession]:
    counters = with_zeros([one.counters for one in sessions if one.counters is not None])
    return [replace(one, counters=found) for one, found in zip(sessions, counters, strict=True)]


def _fit(runs: Sequence[RunRecord], terms: RefreshTerms) -> list[StoredSession]:
    fit = [stored_session(run, terms.job) for run in runs if not flaw_of(run)]
    if not fit:
        raise RefreshRefusedError(f"none of {len(runs)} sessions is fit: {flaw_of(runs[0])}")
    return fit


def _refuse_unlike(runs: Sequence[RunRecord]) -> None:
    first = runs[0]
    for index, run in enumerate(runs[1:], start=2):
        if run.workload.identity != first.workload.identity:
            raise RefreshRefusedError(
                f"session {index} measured {run.workload.identity}, "
                f"session 1 {first.workload.identity}"
            )
        if run.workload.declaration != first.workload.declaration:
            raise RefreshRefusedError(
                f"session {index} declares {run.workload.declaration}, "
                f"session 1 {first.workload.declaration}; a declaration must be the same each time"
            )
        found = differing_fields(machine_class(first.machine), machine_class(run.machine))
        if found:
            text = describe_differences(found, a="in session 1", b=f"in session {index}")
            raise RefreshRefusedError(f"the sessions ran on unlike machines: {text}")
        if run.machine.commit.sha != first.machine.commit.sha:
            raise RefreshRefusedError(
                f"the checkout moved from {first.machine.commit.sha} to {run.machine.commit.sha} "
                f"between session 1 and session {index}; measure again"
            )


def refuse_dirty(paths: Collection[str]) -> None:
    """Raise RefreshRefusedError if ``paths`` were changed and are not committed."""
    if paths:
        raise RefreshRefusedError(
            f"uncommitted changes in {_shown(paths)}: a baseline must be of a commit that others "
            "can check out; commit them first, or say --tokbudget-allow-dirty"
        )


def _refuse_untracked(paths: Collection[str]) -> None:
    """Raise RefreshRefusedError if ``paths`` were imported, and are of no commit."""
    if paths:
        raise RefreshRefusedError(
            f"git does not track {_shown(paths)}, which was imported and measured (what git "
            "ignores is code, too): a baseline must be of a commit that others can check out; "
            "track it (git add -f), keep it outside of the repository, or say "
            "--tokbudget-allow-dirty"
        )


def _shown(paths: Collection[str]) -> str:
    ordered = sorted(paths)
    more = f" and {len(ordered) - 5} more" if ordered[5:] else ""
    return ", ".join(ordered[:5]) + more


def _refuse_dirty(runs: Sequence[RunRecord], terms: RefreshTerms) -> None:
    if not terms.allow_dirty:
        commits = [run.machine.commit for run in runs]
        refuse_dirty({path for one in commits for path in one.dirty_paths})
        _refuse_untracked({path for one in commits for path in one.untracked_modules})
