"""Which host call launched which device event, what the trace lost, and how it is calibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .timeline import ApiKind, BoolArray, HostCalls, IntArray, Timeline

SKEW_LIMIT_NS = 20_000
"""How far the device's clock may be off the host's before a record counts as inconsistent."""
LOST_LIMIT = 0.01
"""Above this share of lost or inconsistent records nothing is said about the trace."""

_FEW_SAMPLES = 20
_DEFAULT_LATENCY_NS = 4_000
_DEFAULT_SPACING_NS = 2_000
_SPACING_LIMIT_NS = 5_000
_LAUNCHING = (ApiKind.LAUNCH, ApiKind.GRAPH_LAUNCH, ApiKind.COPY, ApiKind.SET)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one device's trace says of itself.

    ``latency_ns``: longest ordinary time from the end of a launch call to the start of its kernel
    (1.5 × the median). ``spacing_ns``: longest ordinary gap between two queued kernels (2 × the
    median). ``skew_ns`` is added to the device's times, so that no kernel starts before its launch;
    0 where none did. ``samples``: launches that the latency rests on; below 20 it is a default.
    """

    latency_ns: int = _DEFAULT_LATENCY_NS
    spacing_ns: int = _DEFAULT_SPACING_NS
    skew_ns: int = 0
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Completeness:
    """What the trace lost, counted inside the window.

    ``unlaunched``: device events without a launch record. ``vanished``: launches without a device
    event. ``inconsistent``: no time, negative duration, or a start before the launch beyond skew.
    """

    records: int
    unlaunched: int
    vanished: int
    inconsistent: int

    @property
    def lost_share(self) -> float:
        """Share of records that are lost or inconsistent, 0 … 1."""
        lost = self.unlaunched + self.vanished + self.inconsistent
        return lost / self.records if self.records else 0.0

    @property
    def matched_share(self) -> float:
        """Share of device events with their launch, 0 … 1."""
        return 1.0 - self.unlaunched / self.records if self.records else 1.0


def match_launches(timeline: Timeline) -> IntArray:
    """For each device event the index of the host call that launched it, −1 where there is none.

    Where several calls carry one correlation id, the launching one counts.
    """
    calls = timeline.host_calls
    wanted = timeline.device_events.correlation
    launching = np.flatnonzero(np.isin(calls.kind, _LAUNCHING))
    others = np.flatnonzero(~np.isin(calls.kind, _LAUNCHING))
    ranked = np.concatenate((others, launching))
    return _look_up(calls.correlation[ranked], ranked, wanted)


def calls_of_syncs(timeline: Timeline) -> IntArray:
    """For each synchronization record the index of its host call, −1 where there is none."""
    calls = timeline.host_calls
    return _look_up(calls.correlation, np.arange(len(calls)), timeline.syncs.correlation)


def _look_up(keys: IntArray, values: IntArray, wanted: IntArray) -> IntArray:
    """``values`` of the last equal key; −1 where there is none. Correlation ids count up from a
    small number, so a table is the fast way, and sorting the way for anything else."""
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < 8 * len(keys) + 1024:
        table = np.full(high - low + 1, -1, np.int64)
        table[keys - low] = values
        inside = (wanted >= low) & (wanted <= high)
        return np.where(inside, table[np.where(inside, wanted - low, 0)], -1)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], wanted, side="right") - 1
    found = (at >= 0) & (keys[order][np.maximum(at, 0)] == wanted)
    return np.where(found, values[order][np.maximum(at, 0)], -1)


def usable_events(timeline: Timeline) -> BoolArray:
    """Events whose times can be used: a start, and no negative duration."""
    events = timeline.device_events
    return (events.start_ns > 0) & (events.dur_ns >= 0)


def count_lost(timeline: Timeline, launch: IntArray) -> Completeness:
    """Count what is lost inside the window. Launches while a graph is captured run nothing and
    are not lost."""
    events, calls, window = timeline.device_events, timeline.host_calls, timeline.window
    usable = usable_events(timeline)
    inside = (events.start_ns < window.end_ns) & (
        events.start_ns + events.dur_ns > window.start_ns
    ) | ~usable
    has_launch = launch >= 0
    lead = events.start_ns - calls.start_ns[np.maximum(launch, 0)] if len(calls) else launch
    early = usable & has_launch & (lead < -SKEW_LIMIT_NS)
    launched = np.zeros(len(calls), np.bool_)
    launched[launch[has_launch]] = True
    ran_nothing = ~launched & np.isin(calls.kind, (ApiKind.LAUNCH, ApiKind.GRAPH_LAUNCH))
    ran_nothing &= (calls.start_ns >= window.start_ns) & (calls.start_ns < window.end_ns)
    ran_nothing &= ~_captured(calls)
    return Completeness(
        records=int(inside.sum()) + int(ran_nothing.sum()),
        unlaunched=int((inside & usable & ~has_launch).sum()),
        vanished=int(ran_nothing.sum()),
        inconsistent=int((inside & (early | ~usable)).sum()),
    )


def _captured(calls: HostCalls) -> BoolArray:
    """Calls made by a thread between its begin and end of a graph capture."""
    captured = np.zeros(len(calls), np.bool_)
    capture = calls.kind == ApiKind.CAPTURE
    for thread in np.unique(calls.thread[capture]):
        edges = np.sort(calls.start_ns[capture & (calls.thread == thread)])
        begun = np.searchsorted(edges, calls.start_ns, side="right") % 2 == 1
        captured |= begun & (calls.thread == thread)
    return captured


def calibrate(timeline: Timeline, launch: IntArray, device: int) -> Calibration:
    """Measure skew, launch latency and kernel spacing of one device from its own trace."""
    events, calls = timeline.device_events, timeline.host_calls
    mine = (events.device == device) & (launch >= 0) & usable_events(timeline)
    index = np.flatnonzero(mine & (events.kind <= 1))
    if len(index) < _FEW_SAMPLES:
        return Calibration()
    index = index[np.argsort(events.start_ns[index], kind="stable")]
    call = launch[index]
    start = events.start_ns[index]
    earliest = float(np.quantile(start - calls.start_ns[call], 0.001))
    skew = int(min(max(0.0, -earliest), SKEW_LIMIT_NS))
    start = start + skew
    ends = np.maximum.accumulate(start + events.dur_ns[index])
    free = np.concatenate((start[:1] - 1, ends[:-1]))
    launch_end = calls.start_ns[call] + calls.dur_ns[call]
    latency = (start - launch_end)[(launch_end > free) & (start > launch_end)]
    spacing = (start - free)[(launch_end + SKEW_LIMIT_NS < free) & (start > free)]
    spacing = spacing[spacing <= _SPACING_LIMIT_NS]
    return Calibration(
        latency_ns=min(int(1.5 * np.median(latency)), SKEW_LIMIT_NS)
        if len(latency) >= _FEW_SAMPLES
        else _DEFAULT_LATENCY_NS,
        spacing_ns=int(2 * np.median(spacing))
        if len(spacing) >= _FEW_SAMPLES
        else _DEFAULT_SPACING_NS,
        skew_ns=skew,
        samples=len(latency),
    )
