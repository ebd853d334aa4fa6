"""Causes, first way: growth against the baseline. No model.

A cause cannot cost more than its own host time grew, nor more than the idle time of the device
grew. The idle time is measured, not read off the trace (whose gaps are the profiler's): it is the
step of the timing pass less the device's kernel time, which a trace changes by less than 1 %; a
smaller difference of two traces is none, nor is a little more of a fall in a step that got longer,
since a device that rests clocks higher.

Host time is the trace's, and traced hosts differ by 10 to 40 % from one session to the next: what a
thread did between and in launches is compared at one speed, that of the median launch call.
"""

from __future__ import annotations

from collections import defaultdict

from pytest_tokbudget.records.causes import CauseMs, CauseTable
from pytest_tokbudget.records.result import Finding

from .device_growth import LEAST_MS, device_findings, idle_growth, with_settled_kernels
from .replay_cause import ReplayCause

DISAGREEMENT = 0.2
"""Where the two ways differ by more than this share of the larger, the cause is approximate."""

LEAST_DISAGREEMENT_MS = 0.15
"""Differences below this are within what a trace can tell at all."""

LEAST_SLACK = 0.05
"""A thread that waits for others for this share of a step could be slower at no cost."""

WAITING = ReplayCause.WAIT.value
PYTHON = frozenset({ReplayCause.PYTHON.value, ReplayCause.DISPATCH.value})
"""A thread's time between its calls, with the name of a function and without."""
UNNAMED = frozenset({ReplayCause.DISPATCH.value, ReplayCause.LAUNCH.value})
"""What is left of a thread's time once everything with a name of its own is told apart."""
ALLOCATOR = ReplayCause.ALLOCATOR.value
"""Frees stop the whole device, whoever makes them."""
BLOCKING = frozenset({ReplayCause.SYNC.value, ReplayCause.COPY.value, ALLOCATOR})
"""Calls in which a host waits for its device: the less, the slower the trace makes that host."""


def growth_findings(now: CauseTable, then: CauseTable) -> list[Finding]:
    """Rank what grew since the baseline, largest first, in ms a step.

    A cause of a thread is capped by the growth of the idle time of the devices that the thread
    launches on (the one that grew most); the device's own rows (kernels, stream dependency,
    communication, spacing) stand beside them. Kernel time that grew while a stream waited for it,
    and nothing else ran, is the dependency's and not the kernels'. What the timing pass itself
    recorded (waiting in queues) is believed first, dispatch and launch calls, which have no name
    but their thread's, last; between them the largest come first, and each gets no more of the idle
    time than those before it left. Functions of a thread cost together no more than its Python
    grew: one that the samples named in this session alone was there before, unnamed. Other threads'
    waits are no causes (whoever feeds or reads a slower step waits longer), nor is anything but the
    allocator in a thread that waits for others: it had time to spare.
    """
    now = with_settled_kernels(now, then)
    left = idle_growth(now, then)
    python_left = _python_growth(now, then)
    findings = device_findings(now, then, left)
    for cause, old, grown in _grown(now, then):
        reachable = {one: left[one] for one in cause.devices if one in left} or left
        device = max(reachable, key=lambda one: reachable[one], default=None)
        cap = reachable[device] if device else now.step_ms - then.step_ms
        ms = min(grown, max(cap, 0.0))
        if cause.cause in PYTHON:
            ms = min(ms, python_left[cause.thread])
            python_left[cause.thread] -= max(ms, 0.0)
        if ms >= LEAST_MS:
            findings.append(_finding(cause, old, ms, device))
            for one in list(reachable):
                left[one] -= ms
    return sorted(findings, key=lambda one: -(one.delta_ms_per_step or 0.0))


def _grown(now: CauseTable, then: CauseTable) -> list[tuple[CauseMs, CauseMs | None, float]]:
    """Causes of threads, the baseline's and the growth of their host time, in the order in which
    they are believed."""
    before = {_key(one): one for one in then.causes}
    at_ease = _at_ease(now)
    found = [
        (cause, before.get(_key(cause)), _grown_ms(cause, before.get(_key(cause)), now, then))
        for cause in now.causes
        if cause.cause == ALLOCATOR or cause.thread not in at_ease
        if cause.cause != WAITING or cause.thread == now.counting_thread
    ]
    return sorted(found, key=lambda one: (not one[0].from_timing, one[0].cause in UNNAMED, -one[2]))


def _at_ease(table: CauseTable) -> set[str | None]:
    """Threads other than the counting one that wait for others for a while in every step."""
    return {
        one.thread
        for one in table.causes
        if one.cause == WAITING
        and one.thread != table.counting_thread
        and one.direct_ms >= LEAST_SLACK * table.step_ms
    }


def _grown_ms(cause: CauseMs, old: CauseMs | None, now: CauseTable, then: CauseTable) -> float:
    """By how much the host time of a cause grew, ms a step, at the speed of the baseline's trace
    where it is the time between calls or in launches. Calls that block cost what they end, too: the
    host's lead over the device, which a trace shortens and the replay gives back."""
    grown = _at_speed_of(then, now, cause) - (old.direct_ms if old else 0.0)
    if cause.cause in BLOCKING and grown >= LEAST_MS:
        return max(grown, _what_if_growth(cause, old) or 0.0)
    return grown


def _at_speed_of(then: CauseTable, now: CauseTable, cause: CauseMs) -> float:
    if cause.cause in UNNAMED and now.launch_call_us and then.launch_call_us:
        return cause.direct_ms * then.launch_call_us / now.launch_call_us
    return cause.direct_ms


def _python_growth(now: CauseTable, then: CauseTable) -> dict[str | None, float]:
    """By how much all the time between a thread's calls grew, ms a step."""
    grown: dict[str | None, float] = defaultdict(float)
    for one in now.causes:
        if one.cause in PYTHON:
            grown[one.thread] += _at_speed_of(then, now, one)
    for one in then.causes:
        if one.cause in PYTHON:
            grown[one.thread] -= one.direct_ms
    return grown


def _key(cause: CauseMs) -> tuple[str, str | None, str | None, str | None]:
    """What makes a cause the same in two sessions: lines move, functions stay."""
    return cause.cause, cause.thread, cause.function, cause.file if cause.function else None


def _finding(cause: CauseMs, old: CauseMs | None, ms: float, device: str | None) -> Finding:
    other = _what_if_growth(cause, old)
    return Finding(
        cause=cause_name(cause),
        device=device,
        thread=cause.thread,
        file=cause.file,
        line=cause.line,
        ms_per_step=cause.direct_ms,
        baseline_ms_per_step=old.direct_ms if old else 0.0,
        delta_ms_per_step=ms,
        samples=cause.samples,
        method="growth",
        other_method_ms_per_step=other,
        approximate=other is not None and disagree(ms, other),
    )


def _what_if_growth(cause: CauseMs, old: CauseMs | None) -> float | None:
    """The same growth by the second way: by how much more the replayed step shrinks without it."""
    if cause.alone_ms is None or (old is not None and old.alone_ms is None):
        return None
    return cause.alone_ms - (old.alone_ms or 0.0 if old else 0.0)


def disagree(first_ms: float, second_ms: float) -> bool:
    """Whether two ways of pricing a cause differ by more than they may."""
    allowed = max(DISAGREEMENT * max(abs(first_ms), abs(second_ms)), LEAST_DISAGREEMENT_MS)
    return abs(first_ms - second_ms) > allowed


def cause_name(cause: CauseMs) -> str:
    """How a finding names its cause: the kind, and the function where it has one."""
    return f"{cause.cause}: {cause.function}" if cause.function else cause.cause


def what_if_findings(table: CauseTable) -> list[Finding]:
    """Rank the causes of one session by the second way alone, for want of a baseline."""
    findings = [
        Finding(
            cause=cause_name(one),
            device=one.devices[0] if len(one.devices) == 1 else None,
            thread=one.thread,
            file=one.file,
            line=one.line,
            ms_per_step=one.what_if_ms,
            samples=one.samples,
            method="what-if",
            approximate=bool(table.approximate),
        )
        for one in table.causes
        if one.what_if_ms is not None and abs(one.what_if_ms) >= LEAST_MS
    ]
    return sorted(findings, key=lambda one: -(one.ms_per_step or 0.0))
