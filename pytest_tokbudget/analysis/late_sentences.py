"""What the launching threads did while a device waited for its host, in a sentence a device."""

from __future__ import annotations

from collections.abc import Sequence

from .causes import Cause
from .join import HostLateRow
from .timeline import Timeline, device_label

LEAST_LATE = 0.02
"""Of a device's traced time: waiting for the host less than that is not worth a sentence."""
LEAST_SHARE = 0.05
"""Of the time it waited for the host: a part that is worth naming."""
MOST_PARTS = 3

_DOING = {
    Cause.PYTHON: "in",
    Cause.DATA_WAIT: "waiting in",
    Cause.INTERPRETER_WAIT: "waiting for the GIL or a core in",
}


def late_sentences(rows: Sequence[HostLateRow], timeline: Timeline) -> list[str]:
    """One sentence for each device that waited for its host: the largest named parts of that time.

    Shares are of the traced time, the profiler's own cost included; what they sum to stands in the
    ledger, corrected.
    """
    step_ms = timeline.window.wall_ns / 1e6 / timeline.window.steps
    found = []
    for device in sorted({one.device for one in rows}):
        mine = [one for one in rows if one.device == device]
        whole_ms = sum(one.ms_per_step for one in mine)
        if whole_ms < LEAST_LATE * step_ms:
            continue
        named = [
            f"{_percent(one.ms_per_step, whole_ms)} {_told(one, timeline)}"
            for one in mine
            if one.cause != Cause.HOST_UNATTRIBUTED and one.ms_per_step >= LEAST_SHARE * whole_ms
        ][:MOST_PARTS]
        if named:
            label = device_label(device)
            found.append(f"{label} waited for its host in the trace: {'; '.join(named)}")
    return found


def _told(row: HostLateRow, timeline: Timeline) -> str:
    thread = timeline.threads[row.thread].name
    if row.cause == Cause.GARBAGE_COLLECTION:
        return f"{thread} in garbage collection"
    text = f"{thread} {_DOING[row.cause]} {row.frame}"
    if row.queue is not None:
        text += f", queue {row.queue!r}"
    if row.producers is not None:
        frame, share = row.producers
        text += f", whose producers were in {frame} {_percent(share, 1.0)} of that time"
    low, high = row.ci or (0.0, 1.0)
    return (
        f"{text} ({row.agreeing} of {row.samples} samples, 95 % interval "
        f"{100 * low:.0f} … {100 * high:.0f} %)"
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %"
