"""Growth of hot frames: where there is no device, and where its trace left host time unnamed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import hypot, sqrt
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from ..records.evidence import Evidence
from ..records.result import COUNTING, Finding, FrameResult
from .cpu_summary import MOST_FRAMES
from .device_growth import LEAST_MS
from .replay_cause import ReplayCause

LEAST_NAMED = 0.6
"""A function that grew by this share of what a thread's unnamed time did gives it its name."""
SCATTER = 2.0
"""Standard errors that a hot frame must have grown by: less is the sampler's own scatter."""

_NUMBER = re.compile(r"[-_ ]?\d+")
_Function: TypeAlias = "tuple[str, str, str]"
"""Function, file, kind of thread."""
_Key: TypeAlias = "tuple[_Function, str]"
"""A function and what called it."""


@dataclass(frozen=True, slots=True)
class _Cost:
    """What the lines of one function cost together, ms a step, and the hottest of them."""

    ms: float
    samples: int
    hottest: FrameResult

    @property
    def error_ms(self) -> float:
        """One standard error: counts of samples scatter as Poisson's."""
        return self.ms / sqrt(max(self.samples, 1))


class _Grown(NamedTuple):
    """A hot frame that grew by ``ms`` a step. ``known``: something is known of the baseline's."""

    ms: float
    cost: _Cost
    old: _Cost | None
    known: bool

    @property
    def summed_threads(self) -> int | None:
        """How many threads it is a sum over; of those that count the steps, one pays each step."""
        frame = self.cost.hottest
        many = len(frame.threads) > 1 and frame.threads_are != COUNTING
        return len(frame.threads) if many else None

    @property
    def sums_others(self) -> bool:
        return self.summed_threads is not None and self.cost.hottest.threads_are is None


def frame_findings(now: Evidence, then: Evidence | None) -> list[Finding]:
    """Hot frames by how much they grew since ``then``, ms a step; by their cost without it.

    The samples are those taken while nothing but the sampler was attached. Sums over several
    threads that neither count steps nor are of the limiting role come last, however large: they may
    be many times the step, and cost nothing of it.
    """
    grown = sorted(_grown(now, then), key=lambda one: one.sums_others)
    return [_finding("host", one) for one in grown]


def named_by_frames(findings: Sequence[Finding], now: Evidence, then: Evidence) -> list[Finding]:
    """Give the growth of a thread's unnamed time the name of the function that grew with it.

    A trace is short, and its samples may be few or on no known clock; the stacks were sampled
    longer. Only the function of that thread that grew most can be meant, and only where it grew by
    ``LEAST_NAMED`` of the unnamed time, and no finding has its name already. What it does not
    account for stays unnamed.
    """
    grown = _grown(now, then)
    named = {(one.thread, one.cause) for one in findings}
    found: list[Finding] = []
    for finding in findings:
        parts = _named(finding, grown) if finding.cause == ReplayCause.DISPATCH else [finding]
        taken = (parts[0].thread, parts[0].cause) in named
        found += [finding] if taken else parts
    return sorted(found, key=lambda one: -(one.delta_ms_per_step or 0.0))


def _named(finding: Finding, grown: Sequence[_Grown]) -> list[Finding]:
    """A thread's unnamed growth as a function's and what is left of it; itself if none fits."""
    delta_ms = finding.delta_ms_per_step or 0.0
    most = next((one for one in grown if one.cost.hottest.threads == [finding.thread]), None)
    if most is None or most.ms < LEAST_NAMED * delta_ms:
        return [finding]
    share_ms = min(most.ms, delta_ms)
    parts = [
        replace(
            _finding(ReplayCause.PYTHON.value, most._replace(ms=share_ms)),
            device=finding.device,
            method=finding.method,
        )
    ]
    if delta_ms - share_ms >= LEAST_MS:
        parts.append(replace(finding, delta_ms_per_step=delta_ms - share_ms))
    return parts


def _grown(now: Evidence, then: Evidence | None) -> list[_Grown]:
    """By how many ms a step each hot frame grew, largest growth first."""
    uncalled = {_function(one) for one in (then.hot_frames if then else ()) if not one.caller}
    costs, before = _costs(now, uncalled), _costs(then, uncalled) if then is not None else {}
    known = bool(before)
    # A frame below the coldest one that was kept cost at most as much as that one.
    unseen_ms = min((one.ms for one in before.values()), default=0.0)
    most_unseen_ms = unseen_ms if len(before) >= MOST_FRAMES else 0.0
    found = []
    for key, cost in costs.items():
        old = before.get(key)
        grown_ms = cost.ms - (old.ms if old else most_unseen_ms)
        scatter_ms = SCATTER * hypot(cost.error_ms, old.error_ms if old else 0.0)
        if grown_ms >= max(LEAST_MS, scatter_ms if known else 0.0):
            found.append(_Grown(grown_ms, cost, old, known))
    return sorted(found, key=lambda one: -one.ms)


def _finding(kind: str, grown: _Grown) -> Finding:
    cost, frame = grown.cost, grown.cost.hottest
    return Finding(
        cause=f"{kind}: {frame.function}" + (f" from {frame.caller}" if frame.caller else ""),
        thread=frame.threads[0] if len(frame.threads) == 1 else None,
        file=frame.file,
        line=frame.line,
        ms_per_step=cost.ms,
        baseline_ms_per_step=(grown.old.ms if grown.old else 0.0) if grown.known else None,
        delta_ms_per_step=grown.ms if grown.known else None,
        samples=cost.samples,
        summed_threads=grown.summed_threads,
        method="samples",
    )


def _costs(evidence: Evidence, uncalled: AbstractSet[_Function]) -> dict[_Key, _Cost]:
    """Costs by what makes a frame the same in two sessions; those of ``uncalled`` functions, which
    the baseline saw without a caller, whoever called them."""
    costs: dict[_Key, _Cost] = {}
    for frame, ms in zip(evidence.hot_frames, evidence.frames_ms):
        caller = "" if _function(frame) in uncalled else frame.caller or ""
        key = _function(frame), caller.rpartition(":")[0]
        old = costs.get(key, _Cost(0.0, 0, frame))
        costs[key] = _Cost(
            old.ms + ms,
            old.samples + frame.samples,
            max(old.hottest, frame, key=lambda one: one.samples),
        )
    return costs


def _function(frame: FrameResult) -> _Function:
    """Lines move, functions stay; what moves from one kind of thread to another is a change."""
    kind = _NUMBER.sub("", frame.threads[0]) if frame.threads else ""
    return frame.function, frame.file, kind
