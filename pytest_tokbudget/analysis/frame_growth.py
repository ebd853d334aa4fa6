"""Growth of hot frames: where there is no device, and where its trace left host time unnamed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import TypeAlias

from msgspec.structs import replace

from ..records.evidence import Evidence
from ..records.result import Finding, FrameResult
from .cpu_summary import MOST_FRAMES

MOST_KEPT = MOST_FRAMES
"""Hot frames that evidence keeps."""
LEAST_MS = 0.02
LEAST_NAMED = 0.6
"""A function that grew by this share of what a thread's unnamed time did gives it its name."""
SCATTER = 2.0
"""Standard errors that a hot frame must have grown by: less is the sampler's own scatter."""
UNNAMED = "dispatch"

_NUMBER = re.compile(r"[-_ ]?\d+")
_Key: TypeAlias = "tuple[str, str, str, str]"


@dataclass(frozen=True, slots=True)
class _Cost:
    """What the lines of one function cost together, ms a step, and the hottest of them."""

    ms: float
    samples: int
    hottest: FrameResult | None

    @property
    def error_ms(self) -> float:
        """One standard error: counts of samples scatter as Poisson's."""
        return self.ms / sqrt(max(self.samples, 1))


def frame_findings(now: Evidence, then: Evidence | None) -> list[Finding]:
    """Hot frames by how much they grew since ``then``, ms a step; by their cost without it.

    The samples are those taken while nothing but the sampler was attached.
    """
    known = then is not None and bool(_costs(then))
    return [
        _finding(f"host: {_called(cost.hottest)}", cost, old, grown_ms, known)
        for grown_ms, cost, old in _grown(now, then)
        if cost.hottest is not None
    ]


def named_by_frames(findings: Sequence[Finding], now: Evidence, then: Evidence) -> list[Finding]:
    """Give the growth of a thread's unnamed time the name of the function that grew with it.

    A trace is short, and its samples may be few or on no known clock; the stacks were sampled
    longer. Only the function of that thread that grew most can be meant, and only where it grew by
    ``LEAST_NAMED`` of the unnamed time, and no finding has its name already. What it does not
    account for stays unnamed.
    """
    named = {(one.thread, one.cause) for one in findings}
    found: list[Finding] = []
    for finding in findings:
        most = max(
            (one for one in _grown(now, then) if _threads(one[1]) == [finding.thread]),
            key=lambda one: one[0],
            default=None,
        )
        delta_ms = finding.delta_ms_per_step or 0.0
        if finding.cause != UNNAMED or most is None or most[0] < LEAST_NAMED * delta_ms:
            found.append(finding)
            continue
        grown_ms, cost, old = most
        cause = f"python: {_called(cost.hottest)}"
        if (finding.thread, cause) in named:
            found.append(finding)
            continue
        share = min(grown_ms, delta_ms)
        one = _finding(cause, cost, old, share, known=True)
        found.append(replace(one, device=finding.device, method=finding.method))
        if delta_ms - share >= LEAST_MS:
            found.append(replace(finding, delta_ms_per_step=delta_ms - share))
    return sorted(found, key=lambda one: -(one.delta_ms_per_step or 0.0))


def _grown(now: Evidence, then: Evidence | None) -> list[tuple[float, _Cost, _Cost | None]]:
    """By how many ms a step each hot frame grew, its cost now and then, largest growth first."""
    costs, before = _costs(now), _costs(then) if then is not None else {}
    known = bool(before)
    # A frame below the coldest one that was kept cost at most as much as that one.
    unseen_ms = min((one.ms for one in before.values()), default=0.0)
    most_unseen_ms = unseen_ms if len(before) >= MOST_KEPT else 0.0
    found = []
    for key, cost in costs.items():
        old = before.get(key)
        grown_ms = cost.ms - (old.ms if old else most_unseen_ms)
        scatter_ms = SCATTER * hypot(cost.error_ms, old.error_ms if old else 0.0)
        if grown_ms >= max(LEAST_MS, scatter_ms if known else 0.0):
            found.append((grown_ms, cost, old))
    return sorted(found, key=lambda one: -one[0])


def _finding(cause: str, cost: _Cost, old: _Cost | None, grown_ms: float, known: bool) -> Finding:
    frame = cost.hottest
    assert frame is not None
    return Finding(
        cause=cause,
        thread=frame.threads[0] if len(frame.threads) == 1 else None,
        file=frame.file,
        line=frame.line,
        ms_per_step=cost.ms,
        baseline_ms_per_step=(old.ms if old else 0.0) if known else None,
        delta_ms_per_step=grown_ms if known else None,
        samples=cost.samples,
        method="samples",
    )


def _called(frame: FrameResult | None) -> str:
    if frame is None:
        return ""
    return frame.function + (f" from {frame.caller}" if frame.caller else "")


def _threads(cost: _Cost) -> list[str]:
    return [] if cost.hottest is None else cost.hottest.threads


def _costs(evidence: Evidence) -> dict[_Key, _Cost]:
    costs: dict[_Key, _Cost] = {}
    for frame, ms in zip(evidence.hot_frames, evidence.frames_ms):
        old = costs.get(_key(frame), _Cost(0.0, 0, None))
        hotter = old.hottest is None or frame.samples > old.hottest.samples
        costs[_key(frame)] = _Cost(
            old.ms + ms, old.samples + frame.samples, frame if hotter else old.hottest
        )
    return costs


def _key(frame: FrameResult) -> _Key:
    """Lines move, functions stay; what moves from one kind of thread to another is a change."""
    caller = (frame.caller or "").rpartition(":")[0]
    kind = _NUMBER.sub("", frame.threads[0]) if frame.threads else ""
    return frame.function, frame.file, caller, kind
