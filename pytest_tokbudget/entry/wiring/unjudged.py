"""Verdicts of sessions that were held against nothing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ...records.budget import Budget
from ...records.run import RunRecord
from ...records.verdict import Outcome, Verdict
from ...storing.refresh import Proposal


def not_judged(runs: Sequence[RunRecord]) -> Verdict:
    """The verdict NOT_JUDGED of ``--tokbudget-measure``; its rate is the sessions' median."""
    return Verdict(
        outcome=Outcome.NOT_JUDGED,
        sentences=["measured (--tokbudget-measure): never stored nor compared"],
        tok_s=statistics.median(run.timing.tok_s for run in runs),
    )


def recorded(proposal: Proposal, budget: Budget) -> Verdict:
    """The verdict RECORDED, with what moved."""
    entry = proposal.entry
    sentences = [f"baseline stored from {len(proposal.sessions)} fresh sessions: {entry.reason}"]
    if entry.change_pct is not None and entry.change_ci_pct is not None:
        low, high = entry.change_ci_pct
        sentences.append(
            f"it moves by {entry.change_pct:+.1f} % (99 % interval {low:+.1f} … {high:+.1f} %)"
        )
    if proposal.set_aside:
        sentences.append(f"{len(proposal.set_aside)} slower sessions were set aside and replaced")
    if proposal.note:
        sentences.append(proposal.note)
    sentences.append("a baseline of several jobs knows its spread better: --tokbudget-append")
    return Verdict(
        outcome=Outcome.RECORDED,
        sentences=sentences,
        tok_s=entry.new_tok_s,
        baseline_tok_s=entry.old_tok_s,
        change_pct=entry.change_pct,
        ci_pct=entry.change_ci_pct,
        tolerance_pct=None if budget.tolerance is None else 100 * budget.tolerance,
        floor_tok_s=budget.floor_tok_s,
    )
