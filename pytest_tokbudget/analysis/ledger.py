"""The ledger: the exact partition of each device's wall time into causes.

Per device, over the window between two host marks, every integer nanosecond carries one label and
the rows sum to the window. Where the device ran something, the label is its kind (compute before
communication before copy before set). Each gap is cut at the end of the launch that ended it:
before that the host was late, and its thread's calls and stacks say why; after it the device was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_tokbudget.records.base import Unavailable

from .causes import BUSY, Cause, HostLabels, cause_title
from .device_side import split_device_side
from .gaps import DeviceView, Gaps, find_gaps, view_device
from .host_side import HostSide, host_side
from .intervals import NO_CODE
from .launches import (
    LOST_LIMIT,
    Calibration,
    Completeness,
    calibrate,
    count_lost,
    match_launches,
)
from .segments import Segments, joined, whole_gaps
from .timeline import IntArray, Timeline, Window


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row: its cause, the other device involved (−1: none), and its nanoseconds."""

    cause: Cause
    partner: int
    ns: int

    @property
    def title(self) -> str:
        """The row's name as stored and printed."""
        return cause_title(self.cause, self.partner)


@dataclass(frozen=True, slots=True)
class DeviceLedger:
    """One device. ``rows`` (largest first) sum to ``window.wall_ns`` exactly.

    ``segments`` are the pieces behind the rows, in order of time, ``gaps`` the idle stretches they
    were cut from.
    """

    device: int
    window: Window
    rows: tuple[LedgerRow, ...]
    segments: Segments
    gaps: Gaps
    calibration: Calibration

    @property
    def busy_ns(self) -> int:
        """Time in which the device ran anything."""
        return sum(row.ns for row in self.rows if row.cause in BUSY)

    @property
    def idle_ns(self) -> int:
        """The rest of the window."""
        return self.window.wall_ns - self.busy_ns

    def ns(self, cause: Cause) -> int:
        """Nanoseconds of ``cause``, all partners together."""
        return sum(row.ns for row in self.rows if row.cause == cause)

    def ms_per_step(self) -> dict[str, float]:
        """Title → milliseconds a step; the values sum to the traced step."""
        return {row.title: row.ns / 1e6 / self.window.steps for row in self.rows}


@dataclass(frozen=True, slots=True)
class Ledger:
    """All devices of one traced window, and what the trace lost."""

    window: Window
    devices: tuple[DeviceLedger, ...]
    completeness: Completeness

    def device(self, index: int) -> DeviceLedger:
        """The ledger of device ``index``; ``KeyError`` if it was not accounted for."""
        for one in self.devices:
            if one.device == index:
                return one
        raise KeyError(index)


def build_ledger(timeline: Timeline, host_labels: HostLabels | None = None) -> Ledger | Unavailable:
    """Partition the window of ``timeline`` for each of its devices.

    ``Unavailable`` when more than 1 % of the records are lost or inconsistent: an incomplete trace
    makes idle time out of work.
    """
    if timeline.window.wall_ns <= 0 or timeline.window.steps <= 0:
        return Unavailable("trace incomplete: its window holds no step")
    launch = match_launches(timeline)
    completeness = count_lost(timeline, launch)
    if completeness.lost_share > LOST_LIMIT:
        return Unavailable(
            f"trace incomplete: {completeness.lost_share:.1%} of {completeness.records:,} records "
            f"lost or inconsistent ({completeness.unlaunched:,} without a launch, "
            f"{completeness.vanished:,} launches without a kernel, "
            f"{completeness.inconsistent:,} with impossible times)",
            "trace fewer steps, or fewer activities",
        )
    calibrations = {one: calibrate(timeline, launch, one) for one in timeline.devices}
    devices = partition(timeline, launch, calibrations, host_labels)
    return Ledger(timeline.window, devices, completeness)


def partition(
    timeline: Timeline,
    launch: IntArray,
    calibrations: dict[int, Calibration],
    host_labels: HostLabels | None = None,
) -> tuple[DeviceLedger, ...]:
    """The partition itself, with the launches matched and every device calibrated."""
    views = {
        device: view_device(timeline, launch, device, calibration)
        for device, calibration in calibrations.items()
    }
    host = host_side(timeline, launch, host_labels)
    return tuple(
        _device_ledger(timeline, views, host, view, calibrations[device])
        for device, view in views.items()
    )


def _device_ledger(
    timeline: Timeline,
    views: dict[int, DeviceView],
    host: HostSide,
    view: DeviceView,
    calibration: Calibration,
) -> DeviceLedger:
    gaps = find_gaps(timeline, view)
    ended = gaps.event >= 0
    unlaunched = ended & (gaps.call < 0)
    no_work = np.full(len(gaps), len(view.index) == 0)
    ordinary = ~(unlaunched | gaps.inside_graph | no_work)
    segments = joined(
        [
            _busy(view),
            whole_gaps(gaps, np.flatnonzero(no_work), int(Cause.NO_WORK)),
            whole_gaps(gaps, np.flatnonzero(unlaunched), int(Cause.NO_LAUNCH_RECORD)),
            whole_gaps(gaps, np.flatnonzero(gaps.inside_graph), int(Cause.INSIDE_GRAPH)),
            host.split(gaps, np.flatnonzero(ordinary), view.device),
            split_device_side(
                timeline, views, gaps, np.flatnonzero(ordinary & ended), (view, calibration)
            ),
        ]
    )
    _check(segments, timeline.window)
    return DeviceLedger(view.device, timeline.window, _rows(segments), segments, gaps, calibration)


def _busy(view: DeviceView) -> Segments:
    stretches = view.stretches
    busy = stretches.code != NO_CODE
    count = int(busy.sum())
    return Segments(
        stretches.start_ns[busy],
        stretches.end_ns[busy],
        stretches.code[busy].astype(np.int8),
        np.full(count, -1, np.int32),
        np.full(count, -1, np.int64),
    )


def _rows(segments: Segments) -> tuple[LedgerRow, ...]:
    partners = int(segments.partner.max(initial=-1)) + 2
    key = segments.cause.astype(np.int64) * partners + segments.partner + 1
    # Sums of integers below 2**53 ns (104 days) are exact in float64.
    sums = np.bincount(key, weights=segments.dur_ns)
    rows = [
        LedgerRow(Cause(int(one) // partners), int(one) % partners - 1, int(sums[one]))
        for one in np.flatnonzero(sums)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.ns, row.cause, row.partner)))


def _check(segments: Segments, window: Window) -> None:
    """The promise of the ledger: no nanosecond twice, none left out."""
    contiguous = bool((segments.start_ns[1:] == segments.end_ns[:-1]).all())
    if (
        not len(segments)
        or not contiguous
        or segments.start_ns[0] != window.start_ns
        or segments.end_ns[-1] != window.end_ns
    ):
        raise AssertionError(
            f"the ledger does not partition its window {window.start_ns}…{window.end_ns} ns: "
            f"{len(segments)} pieces of {int(segments.dur_ns.sum())} ns; please report this"
        )
