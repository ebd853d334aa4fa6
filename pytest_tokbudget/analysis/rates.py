"""From raw marks to the figures of a pass: tok/s, tokens by kind, step-time percentiles.

A step is one counting mark. A step's time is the interval between two successive marks **of the
same worker** inside its window; with several counting workers their intervals are pooled, so the
percentiles tell how long a worker's step took, not how often the group finished one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import NothingMeasuredError
from ..records.marks import MarkSeries
from ..records.result import StepMs
from ..records.run import Pass

Floats = npt.NDArray[np.float64]


def windowed(marks: Iterable[MarkSeries]) -> list[MarkSeries]:
    """Return the counting workers that took part in the timing pass."""
    return [one for one in marks if one.counts and one.window is not None and one.window_ns]


def window_tokens(series: MarkSeries) -> dict[str, int]:
    """Return the tokens by kind that ``series`` consumed inside its window.

    Those are the tokens of the marks after the window's first one, up to its last one included.
    """
    if series.window is None:
        return {}
    first, last = series.window
    return {kind: sum(counts[first + 1 : last + 1]) for kind, counts in series.tokens.items()}


def tokens_by_kind(marks: Iterable[MarkSeries]) -> dict[str, int]:
    """Return the tokens of the timing pass by kind, summed over the counting workers."""
    totals: dict[str, int] = {}
    for series in windowed(marks):
        for kind, count in window_tokens(series).items():
            totals[kind] = totals.get(kind, 0) + count
    return totals


def tok_s(marks: Iterable[MarkSeries], kind: str) -> float:
    """Return tokens per second: over the counting workers, Σ tokens in the window / its length.

    Each worker has its own window, cut at its own marks, so no worker's unfinished step is lost or
    counted twice. Raises ``NothingMeasuredError`` when nothing of ``kind`` was counted.
    """
    rate = 0.0
    for series in windowed(marks):
        length_ns = _stepping_ns(series)
        tokens = window_tokens(series).get(kind, 0)
        if tokens and length_ns <= 0:
            raise NothingMeasuredError(
                f"the timing pass of worker {series.worker!r} took no time: "
                "the clock did not advance between its first and its last step"
            )
        rate += tokens * 1e9 / length_ns if tokens else 0.0
    if rate <= 0:
        kinds = ", ".join(sorted(tokens_by_kind(marks))) or "none"
        raise NothingMeasuredError(
            f"no tokens of kind {kind!r} were counted in the timing pass (kinds seen: {kinds})"
        )
    return rate


def _stepping_ns(series: MarkSeries) -> int:
    """The length of the window without the stretches in which the worker was held."""
    start_ns, end_ns = series.window_ns or (0, 0)
    return end_ns - start_ns - _held_ns(series)


def _held_ns(series: MarkSeries) -> int:
    return sum(end - start for start, end in series.pauses_ns)


def timing_pass(marks: Sequence[MarkSeries], kind: str) -> Pass:
    """Return the timing pass: outermost ends, steps, tokens by kind, tok/s of ``kind``.

    Raises ``NothingMeasuredError`` when no counting worker has a window or nothing was counted.
    """
    inside = windowed(marks)
    if not inside:
        raise NothingMeasuredError("no step was counted in the timing pass")
    ends = [series.window_ns for series in inside if series.window_ns]
    return Pass(
        kind="timing",
        start_ns=min(start for start, _ in ends),
        end_ns=max(end for _, end in ends),
        steps=sum(series.window[1] - series.window[0] for series in inside if series.window),
        tokens=tokens_by_kind(inside),
        tok_s=tok_s(inside, kind),
        held_ns=max(_held_ns(series) for series in inside),
    )


def step_times_ms(series: MarkSeries) -> Floats:
    """Return the step times of one worker inside its window, in ms, shape ``(steps,)``.

    The first interval starts where the window starts (after the device's synchronization), one
    after a pause where that ended; the synchronization at the end belongs to no step, though the
    rate includes it.
    """
    if series.window is None or series.window_ns is None:
        return np.empty(0)
    first, last = series.window
    ends = np.asarray([series.window_ns[0], *series.times_ns[first + 1 : last + 1]], dtype=np.int64)
    starts = ends[:-1]
    if series.pauses_ns:
        resumed = np.asarray([series.window_ns[0], *(end for _, end in series.pauses_ns)])
        before = np.searchsorted(resumed, ends[1:], side="right") - 1
        starts = np.maximum(starts, resumed[before])
    return (ends[1:] - starts).astype(np.float64) / 1e6


def pooled_step_times_ms(marks: Iterable[MarkSeries]) -> Floats:
    """Return the step times of all counting workers in ms, worker after worker."""
    parts = [step_times_ms(series) for series in windowed(marks)]
    return np.concatenate(parts) if parts else np.empty(0)


def step_percentiles(step_ms: Floats) -> StepMs:
    """Return p50, p95 (linear interpolation) and the maximum of ``step_ms``.

    Raises ``NothingMeasuredError`` without any step.
    """
    if step_ms.size == 0:
        raise NothingMeasuredError("there is no step to take percentiles of")
    p50, p95 = np.percentile(step_ms, (50, 95))
    return StepMs(p50=float(p50), p95=float(p95), max=float(step_ms.max()))


def share_above_twice_median(step_ms: Floats) -> float:
    """Return the share of all step time that lies above twice the median step, 0 … 1.

    Σ max(0, t − 2·median) / Σ t: what stalls cost, to which low percentiles are blind.
    """
    total = float(step_ms.sum())
    if total <= 0:
        return 0.0
    return float(np.maximum(step_ms - 2 * np.median(step_ms), 0.0).sum()) / total
