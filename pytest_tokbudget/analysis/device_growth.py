"""Growth of what a device itself spends: kernels, waits of its streams, communication, idle time.

The step of the timing pass and the kernel time of the trace are all that is needed: no model.
"""

from __future__ import annotations

from msgspec.structs import replace

from pytest_tokbudget.records.causes import CauseTable, DeviceMs
from pytest_tokbudget.records.result import Finding

from .replay_cause import ReplayCause

LEAST_MS = 0.02
"""Smaller changes a step are not worth a finding."""

TRACED_KERNELS = 0.01
"""Kernel time of two traces differs by up to this share without any change of the kernels."""

RESTED_KERNELS = 0.015
"""It falls by up to this share in a device that idles more: its clock rises when it rests (1.07 %
was the most in three recordings of the same kernels on an H200)."""

SPACING = ReplayCause.SPACING.value
BUSY = ReplayCause.BUSY.value
COMMUNICATION = "exposed communication"
STREAM_WAIT = "stream dependency"


def idle_ms(table: CauseTable, device: DeviceMs) -> float:
    """Measured idle time of a device, ms a step: timing pass less kernel time."""
    return max(table.step_ms - device.busy_ms - device.exposed_communication_ms, 0.0)


def idle_growth(now: CauseTable, then: CauseTable) -> dict[str, float]:
    """By how much the idle time of each device of both sessions grew, ms a step."""
    old = {one.device: idle_ms(then, one) for one in then.devices}
    return {
        one.device: idle_ms(now, one) - old[one.device] for one in now.devices if one.device in old
    }


def with_settled_kernels(now: CauseTable, then: CauseTable) -> CauseTable:
    """Give each device the baseline's kernel time unless it differs by more than traces do, or, in
    a step that got longer, fell by more than a rested device explains."""
    old = {one.device: one.busy_ms for one in then.devices}
    lowest = RESTED_KERNELS if now.step_ms > then.step_ms else TRACED_KERNELS

    def settled(device: DeviceMs) -> DeviceMs:
        before = old.get(device.device, device.busy_ms)
        same = -lowest * before <= device.busy_ms - before <= TRACED_KERNELS * before
        return replace(device, busy_ms=before) if same else device

    return replace(now, devices=[settled(one) for one in now.devices])


def device_findings(now: CauseTable, then: CauseTable, idle: dict[str, float]) -> list[Finding]:
    """Growth of a device's own time: its kernels, the waits of its streams for each other, its
    exposed communication, its spacing. Takes from ``idle``, the growth of each device's idle time,
    what a held stream left idle.

    Nothing costs more than the step grew: kernels that fell where the device was idle before cost
    nothing.
    """
    before = {one.device: one for one in then.devices}
    findings, step = [], now.step_ms - then.step_ms
    for device in now.devices:
        old = before.get(device.device)
        if old is None:
            continue
        cap = max(idle[device.device], 0.0)
        busy = device.busy_ms - old.busy_ms
        waited = _stream_wait_growth(device, old, idle[device.device])
        # Work of a third stream that once filled the wait leaves the device idle when it is over.
        idled = max(waited - max(busy, 0.0), 0.0)
        idle[device.device] -= idled
        spacing = min(device.spacing_ms - old.spacing_ms, cap - idled)
        talked = device.exposed_communication_ms - old.exposed_communication_ms
        for cause, new_ms, old_ms, ms in (
            (BUSY, device.busy_ms, old.busy_ms, min(busy, step) - waited),
            (STREAM_WAIT, device.stream_wait_ms, old.stream_wait_ms, waited),
            (
                COMMUNICATION,
                device.exposed_communication_ms,
                old.exposed_communication_ms,
                min(talked, step),
            ),
            (SPACING, device.spacing_ms, old.spacing_ms, spacing),
        ):
            if ms >= LEAST_MS:
                findings.append(
                    Finding(
                        cause=cause,
                        device=device.device,
                        ms_per_step=new_ms,
                        baseline_ms_per_step=old_ms,
                        delta_ms_per_step=ms,
                        method="growth",
                    )
                )
    return findings


def _stream_wait_growth(device: DeviceMs, old: DeviceMs, idle_growth_ms: float) -> float:
    """By how much the step grew while a stream waited: a wait that lengthened without lengthening
    the device's work or its idle time cost nothing (the work ran before, with or without it), nor
    did one that fell where the device was idle before."""
    if device.stream_wait_ms is None or old.stream_wait_ms is None:
        return 0.0
    grown = device.stream_wait_ms - old.stream_wait_ms
    return max(min(grown, device.busy_ms - old.busy_ms + idle_growth_ms), 0.0)
