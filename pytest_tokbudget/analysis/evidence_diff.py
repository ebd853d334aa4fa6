"""Two pieces of evidence side by side: every row of every ledger, counters, and hot frames."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..records.evidence import DeviceLedgerMs, Evidence
from ..records.result import TestResult
from .evidence_findings import changed_counters, has_evidence, ledger_difference

LEAST_SHARE = 0.01
LEAST_MS = 0.02
"""Of the growth of a hot frame, of all samples or a step: less is the sampler's own scatter."""


@dataclass(frozen=True)
class RowChange:
    """One row of a ledger, ms a step."""

    name: str
    then_ms: float
    now_ms: float
    change_ms: float


@dataclass(frozen=True)
class DeviceChange:
    """One device; ``step`` is the sum of ``rows``."""

    device: str
    rows: list[RowChange]
    step: RowChange


@dataclass(frozen=True)
class FrameChange:
    """One function that grew, its lines together: ms a step, or else (``in_ms`` false) the share of
    all samples, 0 … 1. ``then`` is ``None`` where it was not among the hot frames."""

    function: str
    file: str
    then: float | None
    now: float
    in_ms: bool


@dataclass(frozen=True)
class EvidenceDiff:
    """What differs; ``lacking`` are sentences on what could not be compared."""

    devices: list[DeviceChange]
    counters: dict[str, tuple[float, float]]
    frames: list[FrameChange]
    lacking: list[str] = field(default_factory=list)


def evidence_of_result(result: TestResult) -> Evidence | None:
    """Return what a result of ``run.json`` holds of its evidence; ``None`` without a pass."""
    if not has_evidence(result):
        return None
    ledgers = [
        DeviceLedgerMs(
            device=one.name.partition(" ")[0],
            step_ms=sum(one.ledger.values()),
            busy_ms=one.busy_ms_per_step or 0.0,
            rows_ms=one.ledger,
        )
        for one in result.devices or ()
        if one.ledger is not None
    ]
    frames = result.hot_frames or []
    return Evidence(
        ledgers=ledgers,
        counters=result.counters or {},
        hot_frames=frames,
        frames_ms=[one.ms_per_step for one in frames if one.ms_per_step is not None],
    )


def evidence_diff(then: Evidence, now: Evidence) -> EvidenceDiff:
    """Compare ``now`` with ``then``; rows and frames that changed most come first."""
    before = {one.device: one for one in then.ledgers}
    common = [one for one in now.ledgers if one.device in before]
    lacking = [
        f"{name}: no ledger {side}"
        for side, here, there in (("then", now, then), ("now", then, now))
        for name in (one.device for one in here.ledgers)
        if name not in {one.device for one in there.ledgers}
    ]
    if not (then.ledgers or now.ledgers):
        lacking.append("no device has a ledger on either side")
    lacking += [
        f"no hot frames {side}"
        for side, one in (("then", then), ("now", now))
        if not one.hot_frames
    ]
    return EvidenceDiff(
        devices=[_device(before[one.device], one) for one in common],
        counters=changed_counters(now, then),
        frames=_frames(then, now),
        lacking=lacking,
    )


def _device(then: DeviceLedgerMs, now: DeviceLedgerMs) -> DeviceChange:
    changes = ledger_difference(now, then)
    rows = [
        RowChange(name, then.rows_ms.get(name, 0.0), now.rows_ms.get(name, 0.0), ms)
        for name, ms in sorted(changes.items(), key=lambda one: -abs(one[1]))
    ]
    then_ms, now_ms = sum(then.rows_ms.values()), sum(now.rows_ms.values())
    return DeviceChange(now.device, rows, RowChange("step", then_ms, now_ms, now_ms - then_ms))


def _frames(then: Evidence, now: Evidence) -> list[FrameChange]:
    if not (then.hot_frames and now.hot_frames):
        return []
    in_ms = all(len(one.frames_ms) == len(one.hot_frames) for one in (then, now))
    before, after = _costs(then, in_ms), _costs(now, in_ms)
    # One that is not kept cost at most as much as the coldest that is.
    unseen = min(before.values())
    growth = {key: cost - before.get(key, unseen) for key, cost in after.items()}
    least = LEAST_MS if in_ms else LEAST_SHARE
    return [
        FrameChange(*key, then=before.get(key), now=after[key], in_ms=in_ms)
        for key, more in sorted(growth.items(), key=lambda one: -one[1])
        if more >= least
    ]


def _costs(evidence: Evidence, in_ms: bool) -> dict[tuple[str, str], float]:
    total: dict[tuple[str, str], float] = {}
    costs = evidence.frames_ms if in_ms else [one.share for one in evidence.hot_frames]
    for frame, cost in zip(evidence.hot_frames, costs):
        key = frame.function, frame.file
        total[key] = total.get(key, 0.0) + cost
    return total
