"""Whether this machine, now, can be judged on: what to fix, before any blame of the code.

A normal busy host is fit: what only may slow a step (load, steal, waiting for a core) fails no
test by itself, and excuses a slow one only where the waiting was measured and is large enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p

import numpy as np

from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.conditions import Conditions
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.telemetry import DeviceTelemetry
from pytest_tokbudget.records.verdict import Outcome

from .ruling import Ruling
from .wording import change, percent

FEWEST_SAMPLES = 10
"""Samples of the driver in the pass below which its reasons are anecdotes."""

THROTTLED_SHARE = 0.1
"""A cool card is not throttled at all; one sample in ten says that the clocks really fell."""

CAPPED_SHARE, CAPPED_BEFORE = 0.5, 0.05
"""Held back by its power limit in half the samples, where the baseline's was in hardly any."""

CORES_KEPT = 0.75
"""Fewer usable cores than this part of the baseline's fewest."""

SHORTEST_S = 1.0
SMALLEST_WAIT = 0.05
LARGEST_SHARE = 0.99

_THROTTLING = (
    "hardware slowdown",
    "software thermal slowdown",
    "hardware thermal slowdown",
    "hardware power brake",
)
_FOREIGN_UNKNOWN = "a process of another container"


def unfit(runs: Sequence[RunRecord], baseline: Baseline | None) -> Ruling | None:
    """Return UNFIT with one sentence for each thing to fix, or ``None`` for a fit machine."""
    sentences = [flaw for run in runs for flaw in flaws(run, baseline)]
    return Ruling(Outcome.UNFIT, tuple(dict.fromkeys(sentences))) if sentences else None


def flaws(run: RunRecord, baseline: Baseline | None = None) -> list[str]:
    """Say what made the machine unfit for ``run``, one sentence each."""
    seen = run.conditions
    if seen is None:
        return []
    found = [
        f"{name} was attached to the measured process and is called while it steps: measure "
        "without debugger, coverage or profiler."
        for name in seen.tracers
    ]
    used = _used_devices(run, seen)
    if seen.launch_blocking and any(name.startswith("cuda") for name in run.devices):
        found.append("CUDA_LAUNCH_BLOCKING is set, so every launch waits for the GPU: unset it.")
    for device in used:
        found += _throttled(device) + _shared(device, seen)
        found += _newly_capped(device, baseline)
    return found + _fewer_cores(seen, baseline)


def excused(ruling: Ruling, runs: Sequence[RunRecord], baseline: Baseline, d: float) -> Ruling:
    """Return ``ruling``, or UNFIT for a REGRESSED that waiting for a core can explain by half.

    Of the stepping thread's time the share w went to waiting for a core or to the hypervisor, which
    makes a step longer by at most −log(1 − w) in x. Needs w of every session on both sides.
    """
    if ruling.outcome is not Outcome.REGRESSED:
        return ruling
    new = [_waiting(run.conditions) for run in runs]
    old = [
        None if one.core_wait_share is None else one.core_wait_share + (one.steal_share or 0.0)
        for one in baseline.anchor
    ]
    now = [share for share in new if share is not None]
    before = [share for share in old if share is not None]
    if len(now) < len(new) or len(before) < len(old) or not now or not before:
        return ruling
    explained = _slower_by(float(np.mean(now))) - _slower_by(float(np.mean(before)))
    if explained < d / 2 or min(now) - max(before) < SMALLEST_WAIT:
        return ruling
    sentence = (
        f"The stepping thread waited for a core {percent(100 * float(np.mean(now)))} of the time, "
        f"{percent(100 * float(np.mean(before)))} at the baseline: other processes keep this host "
        "busy."
    )
    advice = f"{change(d)}, which that can explain by half: measure again on a quieter machine."
    return Ruling(Outcome.UNFIT, (sentence, advice), ruling.wants_more)


def _waiting(seen: Conditions | None) -> float | None:
    if seen is None or seen.core_wait_share is None or seen.seconds < SHORTEST_S:
        return None
    return seen.core_wait_share + (seen.steal_share or 0.0)


def _slower_by(share: float) -> float:
    return -log1p(-min(share, LARGEST_SHARE))


def _used_devices(run: RunRecord, seen: Conditions) -> list[DeviceTelemetry]:
    """The watched devices that the workload used; accelerators are recorded in CUDA order."""
    if seen.watch is None:
        return []
    cuda = {f"cuda:{index}": one.uuid for index, one in enumerate(run.machine.accelerators)}
    cuda["cuda"] = cuda.get("cuda:0", "")
    used = {cuda[name] for name in run.devices if name in cuda}
    return [device for device in seen.watch.devices if device.uuid in used]


def _throttled(device: DeviceTelemetry) -> list[str]:
    share = device.throttled_share
    if share is None or device.samples < FEWEST_SAMPLES or share < THROTTLED_SHARE:
        return []
    reasons = " and ".join(name for name in _THROTTLING if name in device.reasons)
    return [
        (
            f"{device.product} {device.uuid} was throttled in {percent(100 * share)} of the timing "
            f"pass ({reasons}): look after its cooling and power, then measure again."
        )
    ]


def _shared(device: DeviceTelemetry, seen: Conditions) -> list[str]:
    """Only processes that can be named: pids of another numbering cannot be told from our own."""
    found = []
    for name in device.foreign:
        if name == _FOREIGN_UNKNOWN:
            continue
        if name in seen.of_controller:
            found.append(
                f"The controlling process {name} holds memory on {device.product} {device.uuid}, "
                "left by other tests or their fixtures: run the throughput tests by themselves."
            )
        else:
            found.append(
                f"{name} shares {device.product} {device.uuid} with the workload: end it, or "
                "choose another GPU (CUDA_VISIBLE_DEVICES)."
            )
    return found


def _newly_capped(device: DeviceTelemetry, baseline: Baseline | None) -> list[str]:
    share = device.reasons.get("software power cap", 0.0)
    old = [one.power_capped_share for one in baseline.anchor] if baseline else []
    known = [one for one in old if one is not None]
    if device.samples < FEWEST_SAMPLES or share < CAPPED_SHARE or not known:
        return []
    if len(known) < len(old) or max(known) > CAPPED_BEFORE:
        return []
    return [
        (
            f"{device.product} {device.uuid} was held back by its power limit in "
            f"{percent(100 * share)} of the timing pass, the baseline's hardly ever: restore "
            "the limit (nvidia-smi -q -d POWER)."
        )
    ]


def _fewer_cores(seen: Conditions, baseline: Baseline | None) -> list[str]:
    known = [one.usable_cores for one in baseline.anchor if one.usable_cores] if baseline else []
    if not known or seen.usable_cores >= CORES_KEPT * min(known):
        return []
    return [
        (
            f"{seen.usable_cores} cores are usable here, {min(known)} were at the baseline: give "
            "this process as many (affinity, container's CPU limit)."
        )
    ]
