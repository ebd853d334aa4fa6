"""Which counters of a session are exact: the same in every step, or in every repeating pattern."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec.structs import replace

from ..records.counters import ExactCounters
from ..records.run import RunRecord
from .rates import windowed

TOKENS, RECOMPILATIONS = "tokens", "recompilations"
ALWAYS_KNOWN = (TOKENS, RECOMPILATIONS)
"""Counters that need no trace: every session has them."""

TRACED = ("kernel_launches", "graph_launches", "syncs_", "copies_", "copy_bytes_", "memsets")
"""How the names of the exact counters of a device trace begin."""

FEWEST_PERIODS = 3
"""Whole repetitions that make a pattern; fewer may be chance."""

NOT_BY_STEP = (0, 0)
TRACE_PASS = "cuda"
NO_TRACE = "no device trace was asked for"


def exact_counters(run: RunRecord) -> ExactCounters:
    """Return the counters of one session.

    Tokens are those of the gate's kind, mark by mark. Recompilations are known for the timing pass
    as a whole: exact where they are the same whole number a step.
    """
    counts: dict[str, int | tuple[int, int]] = {}
    varying: dict[str, tuple[int, int]] = {}
    for name, series in _by_step(run).items():
        found = pattern(series)
        if found is None:
            varying[name] = (min(series), max(series))
        else:
            counts[name] = found
    recompiled = run.timing.recompilations
    if recompiled is not None:
        if recompiled % run.timing.steps == 0:
            counts[RECOMPILATIONS] = recompiled // run.timing.steps
        else:
            varying[RECOMPILATIONS] = (0, recompiled)
    traced = run.traced
    for name in _not_by_step(run):
        counts.pop(name, None)
        varying[name] = NOT_BY_STEP
    untraced = NO_TRACE if traced is None else traced.unavailable
    if not any(device.startswith("cuda") for device in run.devices):
        untraced = ""
    return ExactCounters(
        counts=counts,
        varying=varying,
        instrument="" if traced is None else traced.instrument,
        untraced=untraced,
    )


def pattern(counts: Sequence[int]) -> int | tuple[int, int] | None:
    """Return the count of each step, or ``(count, steps)`` of the shortest pattern that repeats at
    least ``FEWEST_PERIODS`` times; ``None`` for neither."""
    if len(set(counts)) == 1:
        return counts[0]
    for steps in range(2, len(counts) // FEWEST_PERIODS + 1):
        # Two whole copies for each of thousands of lengths would cost seconds on a long pass.
        if counts[steps] == counts[0] and counts[steps:] == counts[:-steps]:
            return sum(counts[:steps]), steps
    return None


def per_step(counters: ExactCounters, name: str) -> Fraction | None:
    """Return the exact count a step; ``None`` where it is not exact or not known.

    A complete trace without a counter is a program that never did it.
    """
    found = counters.counts.get(name)
    if found is None:
        absent = name.startswith(TRACED) and counters.instrument and name not in counters.varying
        return Fraction(0) if absent else None
    return Fraction(*found) if isinstance(found, tuple) else Fraction(found)


def with_zeros(sessions: Sequence[ExactCounters]) -> list[ExactCounters]:
    """Return ``sessions`` with a 0 for each counter of a complete trace that only others have.

    So every session stored together names the same counters, and a lost one shows.
    """
    names = {name for one in sessions for name in (*one.counts, *one.varying)}
    return [
        replace(
            one,
            counts={
                **one.counts,
                **{
                    name: 0
                    for name in names - {*one.counts, *one.varying}
                    if per_step(one, name) == 0
                },
            },
        )
        for one in sessions
    ]


def _by_step(run: RunRecord) -> dict[str, list[int]]:
    kind = run.budget.token_kind
    workers = []
    for series in windowed(run.marks):
        assert series.window is not None
        first, last = series.window
        workers.append(series.tokens.get(kind, [])[first + 1 : last + 1])
    tokens = [count for one in workers for count in one]
    found = {TOKENS: tokens} if tokens else {}
    if run.traced is not None:
        found |= {name: one for name, one in run.traced.by_step.items() if name.startswith(TRACED)}
    return found


def _not_by_step(run: RunRecord) -> list[str]:
    """Counters that no single step owns (several workers mark them), or that have no sizes."""
    if run.traced is None:
        return []
    names = [name for name in run.traced.by_step if name.startswith(TRACED)]
    passes = [one.steps for one in run.passes if one.instrument == TRACE_PASS]
    if any(len(run.traced.by_step[name]) != steps for name in names for steps in passes):
        return names
    sizes = [f"copy_bytes_{one[7:]}" for one in names if one.startswith("copies_")]
    return [name for name in sizes if name not in names]
