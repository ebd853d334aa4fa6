"""What a stored baseline says twice, and has to say alike both times.

Nothing here tells who is right: an edit by hand, a merge, or a file that was put together from two.
What stands in a file once only (canaries, shares of waiting, the learned spread) can be edited
unseen, but for the review of the change. An interval is not computed anew from its spread: a later
version may refine the formula, and a file must not become unreadable by that.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.settled import LEARNED_DEGREES
from ..records.baseline import Baseline
from .stored_rates import rate_contradictions

_ALL_OR_NONE = ("usable_cores", "counters", "tokens")
"""What one refresh stores of each of its sessions, or (in an older version) of none."""


def contradictions(baseline: Baseline) -> Iterator[str]:
    """Say what in ``baseline`` cannot be true together. Each figure by itself must be possible."""
    if not baseline.anchor or not baseline.log:
        name = "log" if baseline.anchor else "anchor"
        yield f"{name} is empty, expected one entry or more"
        return
    yield from rate_contradictions(baseline)
    yield from _cores(baseline)
    yield from _kept_of_all(baseline)
    yield from _learned(baseline)


def _cores(baseline: Baseline) -> Iterator[str]:
    """All sessions are of the machine class; of a pool, whose hosts may differ, the anchor's."""
    cores = baseline.machine_class.fields.get("usable_cores")
    parts = [("anchor", baseline.anchor)]
    if not baseline.machine_class.pool:
        parts.append(("appended", baseline.appended))
    for part, sessions in parts:
        for index, one in enumerate(sessions):
            if None not in (cores, one.usable_cores) and str(one.usable_cores) != cores:
                yield (
                    f"{part}[{index}].usable_cores is {one.usable_cores}, expected {cores} as in "
                    "machine_class.fields"
                )


def _kept_of_all(baseline: Baseline) -> Iterator[str]:
    for name in _ALL_OR_NONE:
        missing = [at for at, one in enumerate(baseline.anchor) if getattr(one, name) is None]
        if 0 < len(missing) < len(baseline.anchor):
            yield (
                f"anchor[{missing[0]}].{name} is null, expected a value as in the other sessions "
                "of the anchor"
            )


def _learned(baseline: Baseline) -> Iterator[str]:
    """What was learned is of the baseline that the last refresh replaced, if it was comparable."""
    learned, last = baseline.learned, baseline.log[-1]
    if learned is None:
        if last.old_tok_s is not None:
            yield (
                "learned is null, expected the spread of the baseline that log[-1] replaced "
                f"(its old_tok_s is {last.old_tok_s})"
            )
        return
    if last.old_tok_s is None:
        yield "learned is a spread, expected null: log[-1] replaced no baseline (no old_tok_s)"
    elif learned.degrees > LEARNED_DEGREES:
        yield f"learned.degrees is {learned.degrees}, expected {LEARNED_DEGREES:g} or less"
