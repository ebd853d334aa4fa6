"""The rates of a stored baseline beside the tokens, seconds and log that stand with them."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, fsum, isclose

from ..analysis.exact_counters import TOKENS
from ..analysis.spread import slowness
from ..records.baseline import Baseline, RefreshEntry, StoredSession

_ROUNDED = 2e-6
"""Two figures of seven digits each are this far from their true ratio at most."""


def rate_contradictions(baseline: Baseline) -> Iterator[str]:
    """Say which rates of ``baseline`` cannot be those of what was measured with them.

    Neither anchor nor log may be empty.
    """
    x = [slowness(one.tok_s) for one in baseline.anchor]
    mean = exp(-fsum(x) / len(x))
    last = baseline.log[-1]
    if not isclose(last.new_tok_s, mean, rel_tol=_ROUNDED):
        yield (
            f"log[{len(baseline.log) - 1}].new_tok_s is {last.new_tok_s:.7g}, expected {mean:.7g}, "
            "the geometric mean of the tok_s of the anchor"
        )
    for part, sessions in (("anchor", baseline.anchor), ("appended", baseline.appended)):
        for index, session in enumerate(sessions):
            yield from _of_session(f"{part}[{index}]", session)
    for index, entry in enumerate(baseline.log):
        yield from _of_entry(f"log[{index}]", entry)


def _of_session(at: str, session: StoredSession) -> Iterator[str]:
    """A rate leaves out what a pass was held for, so it may be above tokens / seconds, not below.

    With several workers it is the sum of theirs, each over its own part of the pass: not below
    either.
    """
    fewest, most = _tokens(session)
    if session.tokens is not None and not fewest <= session.tokens <= most:
        yield (
            f"{at}.tokens is {session.tokens}, expected {_range(fewest, most)}: {session.steps} "
            f"steps with the tokens of {at}.counters"
        )
        return
    tokens = fewest if session.tokens is None else session.tokens
    least = tokens / session.seconds
    if session.tok_s < least * (1 - _ROUNDED):
        yield (
            f"{at}.tok_s is {session.tok_s:.7g}, expected {least:.7g} or more: "
            f"{tokens} tokens{'' if fewest == most or session.tokens else ' or more'} "
            f"in {session.seconds:.7g} s"
        )


def _tokens(session: StoredSession) -> tuple[int, float]:
    """The fewest and the most tokens of the pass that its counters allow."""
    counters, steps = session.counters, session.steps
    if counters is not None and TOKENS in counters.counts:
        found = counters.counts[TOKENS]
        count, every = found if isinstance(found, tuple) else (found, 1)
        return count * (steps // every), count * -(-steps // every)
    if counters is not None and TOKENS in counters.varying:
        least, greatest = counters.varying[TOKENS]
        return least * steps, greatest * steps
    return 0, float("inf")


def _range(fewest: int, most: float) -> str:
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"


def _of_entry(at: str, entry: RefreshEntry) -> Iterator[str]:
    """Change and interval of one refresh follow from its rates; the interval lies about it in x."""
    if entry.old_tok_s is None:
        return
    ratio = entry.new_tok_s / entry.old_tok_s
    change = 100 * (ratio - 1)
    if entry.change_pct is None or abs(entry.change_pct - change) > 300 * _ROUNDED * (1 + ratio):
        found = "null" if entry.change_pct is None else f"{entry.change_pct:.7g}"
        yield (
            f"{at}.change_pct is {found}, expected {change:.7g}, from {entry.old_tok_s:.7g} to "
            f"{entry.new_tok_s:.7g} tok/s"
        )
    if entry.change_ci_pct is None or entry.change_ci_pct[0] <= -100:
        return
    low, high = (1 + end / 100 for end in entry.change_ci_pct)
    if not isclose(low * high, ratio**2, rel_tol=10 * _ROUNDED + _ROUNDED / low):
        yield (
            f"{at}.change_ci_pct is {list(entry.change_ci_pct)}, expected an interval about "
            f"{change:.7g}, its change in percent"
        )
