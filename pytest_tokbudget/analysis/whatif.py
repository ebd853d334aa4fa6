"""Causes, second way: what a step would take without each of them, on a replay.

Causes are taken away one after another in a fixed order, so that the differences telescope: the
rows sum to the replayed window to the nanosecond, and with ``unexplained`` to the timing pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from .replay import replay
from .replay_cause import ReplayCause
from .replay_plan import HostModel, Plan, make_plan
from .replay_program import CallKind, Frame, Program, Waits
from .timeline import BoolArray, DeviceKind

APPROXIMATE_SHARE = 0.05
"""More unexplained than this share of the step marks the ledger approximate."""

IDENTITY_SHARE = 0.01
"""A replay with nothing removed must meet the trace within this share."""


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """One cause. ``ns`` is its part of the window in the telescoping order (may be negative where
    several threads share the interpreter); ``alone_ns`` is the window less the window without this
    cause only. ``frame`` and ``samples`` only for named Python."""

    cause: ReplayCause
    ns: int
    alone_ns: int
    frame: Frame | None = None
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The rows of a window. ``replayed_ns`` = Σ ``ns``; ``timing_ns`` is the timing pass over as
    many steps, ``None`` if not given; ``identity`` is replay ÷ trace − 1 with nothing corrected."""

    rows: tuple[WhatIfRow, ...]
    steps: int
    replayed_ns: int
    timing_ns: int | None
    identity: float

    @property
    def unexplained_ns(self) -> int | None:
        """Timing pass less replay: the row that makes the sum exact."""
        return None if self.timing_ns is None else self.timing_ns - self.replayed_ns

    @property
    def approximate(self) -> bool:
        """Whether the replay misses the timing pass by more than 5 %, or the trace by 1 %."""
        unexplained = self.unexplained_ns
        if abs(self.identity) > IDENTITY_SHARE:
            return True
        if unexplained is None or self.timing_ns is None:
            return False
        return abs(unexplained) > APPROXIMATE_SHARE * self.timing_ns

    def ms_per_step(self, cause: ReplayCause, *, alone: bool = False) -> float:
        """Milliseconds a step of all rows of a cause."""
        rows = [one for one in self.rows if one.cause is cause]
        return sum(one.alone_ns if alone else one.ns for one in rows) / self.steps / 1e6


def what_if(
    program: Program, model: HostModel, timing_step_ms: float | None = None, gil_share: float = 1.0
) -> WhatIf:
    """Price every cause of a program under a host model.

    ``timing_step_ms`` is the step of the pass without instruments; the rows and ``unexplained``
    then sum to it.
    """
    whole = make_plan(program, model, gil_share)
    replayed = _wall_ns(whole)
    rows: list[WhatIfRow] = []
    plan, before = whole, replayed
    for cause, frame, remove in _removals(whole):
        less = remove(plan)
        after = before if _same(less, plan) else _wall_ns(less)
        alone = less if plan is whole else remove(whole)
        plan = less
        rows.append(
            WhatIfRow(
                cause=cause,
                ns=before - after,
                alone_ns=_saved(whole, alone, replayed, after if alone is less else None),
                frame=None if frame is None else program.frames[frame],
                samples=None if frame is None else program.frame_samples[frame],
            )
        )
        before = after
    traced = replay(make_plan(program, model, gil_share, traced=True)).wall_ns
    return WhatIf(
        rows=tuple(rows),
        steps=program.steps,
        replayed_ns=replayed,
        timing_ns=None if timing_step_ms is None else round(timing_step_ms * 1e6 * program.steps),
        identity=traced / program.wall_ns - 1,
    )


def _saved(whole: Plan, alone: Plan, replayed: int, known: int | None) -> int:
    """What one removal by itself saves; ``known`` is its replay where there is one already."""
    if _same(alone, whole):
        return 0
    return replayed - (_wall_ns(alone) if known is None else known)


def _same(one: Plan, other: Plan) -> bool:
    """Whether a removal removed nothing, so that it needs no replay."""
    pairs = (
        (one.own_ns, other.own_ns),
        (one.sleep_ns, other.sleep_ns),
        (one.wait_ns, other.wait_ns),
        (one.call_ns, other.call_ns),
        (one.waits, other.waits),
        (one.latency_ns, other.latency_ns),
        (one.carried_ns, other.carried_ns),
        (one.device.dur_ns, other.device.dur_ns),
        (one.device.spacing_ns, other.device.spacing_ns),
        (one.device.after, other.device.after),
    )
    return all(left is right or np.array_equal(left, right) for left, right in pairs)


def _wall_ns(plan: Plan) -> int:
    return round(replay(plan).wall_ns)


def _removals(plan: Plan) -> Iterable[tuple[ReplayCause, int | None, Callable[[Plan], Plan]]]:
    yield ReplayCause.WAIT, None, _without_waits
    yield ReplayCause.COPY, None, _without_copies
    yield ReplayCause.ALLOCATOR, None, lambda p: _without_calls(p, CallKind.ALLOC)
    yield ReplayCause.SYNC, None, lambda p: _without_calls(p, CallKind.SYNC)
    yield ReplayCause.SLEEP, None, lambda p: replace(p, sleep_ns=np.zeros_like(p.sleep_ns))
    for frame in _frames_by_size(plan):
        yield ReplayCause.PYTHON, frame, lambda p, frame=frame: _without_python(p, frame)  # type: ignore[misc]
    yield ReplayCause.DISPATCH, None, _without_dispatch
    yield ReplayCause.LAUNCH, None, _without_launches
    yield ReplayCause.SPACING, None, _without_spacing
    yield ReplayCause.BUSY, None, _without_kernels


def _frames_by_size(plan: Plan) -> list[int]:
    named = plan.program.host.named
    sums = [(float(plan.named_ns[named == one].sum()), one) for one in np.unique(named)]
    return [int(one) for total, one in sorted(sums, reverse=True) if one >= 0 and total > 0]


def _without_waits(plan: Plan) -> Plan:
    """No waiting for another thread's queue item, for another stream, or in a declared wait."""
    queue = (plan.waits == Waits.PUT) | (plan.waits == Waits.GET)
    device = replace(plan.device, after=np.full_like(plan.device.after, -1))
    return replace(_calls_at(plan, queue), device=device, wait_ns=np.zeros_like(plan.wait_ns))


def _without_copies(plan: Plan) -> Plan:
    dur = np.where(plan.device.kind == DeviceKind.COPY, 0.0, plan.device.dur_ns)
    device = replace(plan.device, dur_ns=dur)
    return _without_calls(replace(plan, device=device), CallKind.COPY)


def _without_calls(plan: Plan, kind: CallKind) -> Plan:
    return _calls_at(plan, plan.program.host.kind == kind)


def _calls_at(plan: Plan, which: BoolArray) -> Plan:
    """Let calls take no time and wait for nothing."""
    waits = np.where(which, np.int8(Waits.NOTHING), plan.waits)
    return replace(plan, waits=waits, call_ns=np.where(which, 0.0, plan.call_ns))


def _without_python(plan: Plan, frame: int) -> Plan:
    away = np.where(plan.program.host.named == frame, plan.named_ns, 0.0)
    own = np.maximum(plan.own_ns - away, 0.0)
    share = np.divide(own, plan.own_ns, out=np.ones_like(own), where=plan.own_ns > 0)
    return replace(plan, own_ns=own, gil_ns=plan.gil_ns * share, named_ns=plan.named_ns - away)


def _without_dispatch(plan: Plan) -> Plan:
    """No time between calls at all, named or not."""
    zero = np.zeros_like(plan.own_ns)
    return replace(plan, own_ns=zero, gil_ns=zero, named_ns=zero)


def _without_launches(plan: Plan) -> Plan:
    """No host time at all: what remains is the devices'."""
    calls = _calls_at(plan, np.ones(len(plan.waits), np.bool_))
    return replace(calls, latency_ns=np.zeros_like(plan.latency_ns))


def _without_spacing(plan: Plan) -> Plan:
    device = replace(plan.device, spacing_ns=np.zeros_like(plan.device.spacing_ns))
    return replace(plan, device=device)


def _without_kernels(plan: Plan) -> Plan:
    device = replace(plan.device, dur_ns=np.zeros_like(plan.device.dur_ns))
    return replace(plan, device=device, carried_ns=np.zeros_like(plan.carried_ns))
