"""Steady state is found, not assumed: the earliest cut after which step times hold no change.

Step times of real training are far from independent: neighbours correlate by .5 to .8, the level
of a launch-bound step wanders with its host, a GPU-bound step slows by 1 % as the card reaches its
power limit, pipelines stall periodically. So the test is on block levels, whose own scatter is the
yardstick, and only a change that is material to the verdict counts. Two shapes are looked for: a
step (two-segment fit, as in Page's and Hinkley's change-point statistics) and a line.

``THRESHOLD`` is far above a textbook's Student quantile on purpose. It was set on recorded H200
sessions: of stretches of 50 to 400 steps, none of a GPU-bound workload exceeds it, and about one in
ten of a launch-bound one on a shared host, whose level truly wanders by 10 %; one look alone
therefore decides nothing, it only asks for more warm-up and a new pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BLOCKS = 20
MIN_JUDGED_STEPS = 8
MIN_TAIL_STEPS = 20
THRESHOLD = 7.0
MIN_MATERIAL = 0.01
DEFAULT_TOLERANCE = 0.05
_CLIP = 3.0
_SLOW_HEAD = 1.5
_TINY = 1e-9
_QUEUE_FULL = 0.8

Floats = npt.NDArray[np.float64]


class ChangePoint(NamedTuple):
    """A material change of level: about step ``at``; means of the two sides in ms."""

    at: int
    before_ms: float
    after_ms: float

    def __str__(self) -> str:
        change = 100.0 * (self.after_ms / self.before_ms - 1.0)
        return (
            f"step times changed by {change:+.1f} % about step {self.at + 1} "
            f"({self.before_ms:.3g} → {self.after_ms:.3g} ms)"
        )


class Steady(NamedTuple):
    """``cut`` is the index of the first steady step; ``None`` when there is none, with why."""

    cut: int | None
    reason: str = ""


def material_change(tolerance: float | None) -> float:
    """Return the smallest relative change of level that matters: half the tolerance, at least 1 %.

    Without a tolerance (only a floor is demanded) the default tolerance of 5 % stands in.
    """
    return max(MIN_MATERIAL, (DEFAULT_TOLERANCE if tolerance is None else tolerance) / 2)


def change_point(step_ms: Sequence[float] | Floats, tolerance: float | None) -> ChangePoint | None:
    """Return the clearest material change of level in ``step_ms``, or ``None``.

    Levels are block medians (blind to stalls) and block means with steps clipped at three medians
    (which see a slow share of steps). Fewer than 8 steps cannot be judged: ``None``.
    """
    times = np.asarray(step_ms, dtype=np.float64)
    if times.size < MIN_JUDGED_STEPS:
        return None
    median = max(float(np.median(times)), _TINY)
    clipped = np.minimum(times, _CLIP * median)
    count = min(BLOCKS, max(times.size // 4, MIN_JUDGED_STEPS))
    edges = np.linspace(0, times.size, count + 1).astype(int)
    blocks = [clipped[a:b] for a, b in itertools.pairwise(edges)]
    for levels in (
        np.array([np.median(block) for block in blocks]),
        np.array([block.mean() for block in blocks]),
    ):
        split = _clear_split(levels, material_change(tolerance))
        if split is not None:
            return ChangePoint(
                int(edges[split]), float(levels[:split].mean()), float(levels[split:].mean())
            )
    return None


def queued_ahead(step_ms: Sequence[float] | Floats, drain_ms: float) -> int:
    """Return how many leading steps of a pass only queued work for a device that fell behind.

    A pass begins with an idle device: until its queue is full the host's step times are those of
    launching. A device that is always busy takes ``level`` ms a step, the mean of the whole pass
    with the ``drain_ms`` that it worked on after the last step, and what the first steps were
    faster than that is what it has left: Σ (level − step) = drain. Without a step's worth of
    backlog, or where the sum falls below nothing queued at all, steps were not queued ahead: 0.
    """
    times = np.asarray(step_ms, dtype=np.float64)
    level = (float(times.sum()) + drain_ms) / max(times.size, 1)
    if drain_ms < level:
        return 0
    backlog = np.cumsum(level - times)
    ahead = int(np.argmax(backlog >= _QUEUE_FULL * drain_ms)) + 1
    if backlog[:ahead].min() < 0:
        return 0
    middle = (float(times[:ahead].mean()) + level) / 2
    full = (times >= middle) | (backlog > drain_ms / _QUEUE_FULL)
    return ahead + int(np.argmax(np.append(full[ahead:], True)))


def material_to_mean(change: ChangePoint, steps: int, tolerance: float | None) -> bool:
    """Return whether ``change`` within a pass of ``steps`` steps matters to the pass's mean rate.

    It does where the mean would move by ``material_change`` without the shorter side: a pass is
    judged by its mean, which a few slow steps at its end cannot spoil.
    """
    shorter = min(change.at, steps - change.at) / steps
    longer_ms = change.after_ms if change.at < steps / 2 else change.before_ms
    moved = shorter * abs(change.after_ms - change.before_ms)
    return moved >= material_change(tolerance) * longer_ms


def find_steady(
    step_ms: Sequence[float] | Floats,
    tolerance: float | None,
    *,
    recompilations: Sequence[int] | None = None,
    reserved_bytes: Sequence[int] | None = None,
    min_tail: int = MIN_TAIL_STEPS,
) -> Steady:
    """Return the earliest cut with at least ``min_tail`` steps behind it and none of these after.

    A change point of ``step_ms``; a recompilation; device memory newly reserved (more than 1 % of
    it). The last two are cumulative readings taken after each step, as many as steps (``None``: not
    known). Cuts are tried on a grid that widens by half each time, so the cut may be up to a half
    too late.
    """
    times = np.asarray(step_ms, dtype=np.float64)
    first, reason = _after_events(recompilations, reserved_bytes)
    last = times.size - min_tail
    if last < 0:
        return Steady(None, f"only {times.size} warm-up steps so far, {min_tail} are needed")
    for cut in _candidates(first, last):
        change = change_point(times[cut:], tolerance)
        if change is not None:
            reason = str(change._replace(at=change.at + cut))
            continue
        cut += _slow_head(times[cut:])
        if cut <= last:
            return Steady(cut)
        reason = f"step {cut} was still more than {_SLOW_HEAD} times as slow as the median"
    return Steady(None, reason)


def _after_events(
    recompilations: Sequence[int] | None, reserved_bytes: Sequence[int] | None
) -> tuple[int, str]:
    """Return the first step after the last disturbing event, and the event in words."""
    first, reason = 0, ""
    for readings, words, smallest in (
        (recompilations, "code was still being compiled in step", 0.0),
        (reserved_bytes, "device memory was still being newly reserved in step", MIN_MATERIAL),
    ):
        if readings is None or len(readings) < 2:
            continue
        peaks = np.maximum.accumulate(np.asarray(readings, dtype=np.int64))
        rises = np.flatnonzero(np.diff(peaks) > smallest * peaks[1:])
        if rises.size and int(rises[-1]) + 2 > first:
            first = int(rises[-1]) + 2
            reason = f"{words} {first}"
    return first, reason


def _candidates(first: int, last: int) -> list[int]:
    cuts, offset = [], 0
    while first + offset <= last:
        cuts.append(first + offset)
        offset += max(1, offset // 2)
    return cuts


def _slow_head(times: Floats) -> int:
    """Return how many leading steps belong to a slow start too short for a change point.

    The first step after a compilation is one; only the first tenth is looked at, so that a stall
    in the middle is no slow start.
    """
    head = times[: max(1, times.size // 10)]
    slow = np.flatnonzero(head > _SLOW_HEAD * np.median(times))
    return int(slow[-1]) + 1 if slow.size else 0


def _clear_split(levels: Floats, material: float) -> int | None:
    """Return the block before which the level changed, materially and clearly, else ``None``."""
    scale = float(np.median(levels))
    split, change, score = _best_step(levels)
    if score >= THRESHOLD and abs(change) >= material * scale:
        return split
    rise, score = _line(levels)
    if score >= THRESHOLD and abs(rise) / 2 >= material * scale:
        return levels.size // 2
    return None


def _best_step(levels: Floats) -> tuple[int, float, float]:
    """Return split, change and t of the two-segment fit with the largest t (pooled variance)."""
    count = levels.size
    edge = max(2, count // 6)
    splits = np.arange(edge, count - edge + 1)
    sums, squares = np.cumsum(levels), np.cumsum((levels - levels.mean()) ** 2)
    left = sums[splits - 1] / splits
    right = (sums[-1] - sums[splits - 1]) / (count - splits)
    change = right - left
    weight = splits * (count - splits) / count
    within = np.maximum(squares[-1] - weight * change**2, 0.0) / (count - 2)
    floor = (_TINY * max(abs(float(levels.mean())), _TINY)) ** 2
    t = np.abs(change) * np.sqrt(weight) / np.sqrt(np.maximum(within, floor))
    best = int(np.argmax(t))
    return int(splits[best]), float(change[best]), float(t[best])


def _line(levels: Floats) -> tuple[float, float]:
    """Return the rise over the whole series, and t of the slope, of the least-squares line."""
    count = levels.size
    place = np.arange(count) - (count - 1) / 2
    spread = float(place @ place)
    slope = float(place @ levels) / spread
    rest = levels - levels.mean() - slope * place
    floor = _TINY * max(abs(float(levels.mean())), _TINY)
    noise = max(float(np.sqrt(rest @ rest / (count - 2))), floor)
    return slope * count, abs(slope) * np.sqrt(spread) / noise
