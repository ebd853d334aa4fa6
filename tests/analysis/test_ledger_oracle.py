"""The ledger against a slow oracle that labels one nanosecond after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tokbudget.analysis.causes import HOST_LABELS, Cause, HostLabels
from pytest_tokbudget.analysis.device_side import DEPENDENCY_TOLERANCE_NS
from pytest_tokbudget.analysis.launches import Calibration, match_launches
from pytest_tokbudget.analysis.ledger import partition
from pytest_tokbudget.analysis.timeline import (
    ApiKind,
    DeviceEvents,
    HostCalls,
    Stalls,
    SyncKind,
    SyncRecords,
    ThreadInfo,
    Timeline,
    Window,
)

WINDOW = Window(1_000, 1_090, 3)
THREADS = (ThreadInfo(11, "main"), ThreadInfo(12, "loader"), ThreadInfo(13, "auto", python=False))
LAUNCHING = (ApiKind.LAUNCH, ApiKind.GRAPH_LAUNCH, ApiKind.COPY, ApiKind.SET)


@dataclass(frozen=True)
class Call:
    thread: int
    start: int
    dur: int
    corr: int
    kind: ApiKind

    @property
    def end(self) -> int:
        return self.start + self.dur


@dataclass(frozen=True)
class Event:
    device: int
    stream: int
    start: int
    dur: int
    corr: int
    kind: int

    @property
    def end(self) -> int:
        return self.start + self.dur


@dataclass(frozen=True)
class Sync:
    device: int
    stream: int
    corr: int
    kind: SyncKind


@dataclass(frozen=True)
class World:
    events: list[Event]
    calls: list[Call]
    syncs: list[Sync]
    stalls: list[tuple[int, int]]
    labels: list[tuple[int, int, int, Cause]]
    calibrations: dict[int, Calibration]


TIMES = st.integers(985, 1_100)
SHORT = st.integers(0, 14)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Launches with their events (some lost, some on the wrong side of their launch), other calls,
    waits, stalls and labels, all at random times and freely overlapping."""
    events: list[Event] = []
    calls: list[Call] = []
    syncs: list[Sync] = []
    for corr in range(1, draw(st.integers(1, 12))):
        kind = draw(st.sampled_from((*LAUNCHING, ApiKind.LAUNCH, ApiKind.LAUNCH)))
        call = Call(draw(st.integers(0, 2)), draw(TIMES), draw(SHORT), corr, kind)
        if draw(st.integers(0, 9)):
            calls.append(call)
        for _ in range(draw(st.integers(0, 3 if kind == ApiKind.GRAPH_LAUNCH else 1))):
            start = call.start + draw(st.integers(-4, 25))
            where = draw(st.tuples(st.integers(0, 1), st.integers(7, 8)))
            events.append(Event(*where, start, draw(SHORT), corr, draw(st.integers(0, 3))))
    for corr in range(100, 100 + draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(sorted(set(ApiKind) - set(LAUNCHING))))
        calls.append(Call(draw(st.integers(0, 2)), draw(TIMES), draw(SHORT), corr, kind))
        if kind == ApiKind.SYNC and draw(st.booleans()):
            syncs.append(Sync(draw(st.integers(0, 1)), -1, corr, SyncKind.CONTEXT))
        if kind == ApiKind.WAIT_EVENT and draw(st.booleans()):
            where = draw(st.tuples(st.integers(0, 1), st.integers(7, 8)))
            syncs.append(Sync(*where, corr, SyncKind.WAIT_EVENT))
    stalls = draw(st.lists(st.tuples(TIMES, SHORT), max_size=2))
    label = st.tuples(st.integers(0, 1), TIMES, SHORT, st.sampled_from(HOST_LABELS))
    calibrations = {
        device: Calibration(draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(SHORT) // 4)
        for device in (0, 1, 2)
    }
    return World(events, calls, syncs, stalls, draw(st.lists(label, max_size=5)), calibrations)


def timeline_of(world: World) -> Timeline:
    def column(values: list[int], dtype: type[np.signedinteger] = np.int64) -> np.ndarray:
        return np.array(values, dtype)

    events, calls, syncs = world.events, world.calls, world.syncs
    return Timeline(
        window=WINDOW,
        devices=(0, 1, 2),
        device_events=DeviceEvents(
            column([e.device for e in events], np.int32),
            column([e.stream for e in events]),
            column([e.start for e in events]),
            column([e.dur for e in events]),
            column([e.corr for e in events]),
            column([e.kind for e in events], np.int8),
            column([0 for _ in events], np.int32),
            column([-1 for _ in events]),
        ),
        host_calls=HostCalls(
            column([c.thread for c in calls], np.int32),
            column([c.start for c in calls]),
            column([c.dur for c in calls]),
            column([c.corr for c in calls]),
            column([c.kind for c in calls], np.int8),
            column([0 for _ in calls], np.int32),
        ),
        syncs=SyncRecords(
            column([s.device for s in syncs], np.int32),
            column([s.stream for s in syncs]),
            column([0 for _ in syncs]),
            column([0 for _ in syncs]),
            column([s.corr for s in syncs]),
            column([s.kind for s in syncs], np.int8),
        ),
        stalls=Stalls(column([s for s, _ in world.stalls]), column([d for _, d in world.stalls])),
        names=("any",),
        threads=THREADS,
    )


def labels_of(world: World) -> HostLabels:
    return HostLabels(
        np.array([one[0] for one in world.labels], np.int32),
        np.array([one[1] for one in world.labels], np.int64),
        np.array([one[1] + one[2] for one in world.labels], np.int64),
        np.array([one[3] for one in world.labels], np.int8),
    )


class Oracle:
    """Says what one nanosecond of one device is, by looking at everything again each time."""

    def __init__(self, world: World, device: int) -> None:
        self.world, self.device = world, device
        self.calibration = world.calibrations[device]
        self.mine = self.events_of(device)
        self.call_of = {c.corr: c for c in world.calls if c.kind in LAUNCHING}

    def events_of(self, device: int) -> list[Event]:
        skew = self.world.calibrations[device].skew_ns
        shifted = [
            Event(e.device, e.stream, e.start + skew, e.dur, e.corr, e.kind)
            for e in self.world.events
            if e.device == device
        ]
        return sorted(shifted, key=lambda e: (e.start, e.kind))  # as the trace is read: stable

    def kind_at(self, at: int) -> int | None:
        return min((e.kind for e in self.mine if e.start <= at < e.end), default=None)

    def label(self, at: int) -> tuple[Cause, int]:
        busy = self.kind_at(at)
        if busy is not None:
            return Cause(busy), -1
        if not self.mine:
            return Cause.NO_WORK, -1
        begin = at
        while begin > WINDOW.start_ns and self.kind_at(begin - 1) is None:
            begin -= 1
        end = at
        while end < WINDOW.end_ns and self.kind_at(end) is None:
            end += 1
        following = next((e for e in self.mine if e.start >= end), None)
        if following is None:
            launched = [e for e in self.mine if e.corr in self.call_of]
            call = self.call_of[launched[-1].corr] if launched else None
            return self.host_late(at, call, call.thread if call else -1)
        call = self.call_of.get(following.corr)
        if call is None:
            return Cause.NO_LAUNCH_RECORD, -1
        first = next(e for e in self.mine if e.corr == following.corr)
        if call.kind == ApiKind.GRAPH_LAUNCH and first is not following:
            return Cause.INSIDE_GRAPH, -1
        split = min(max(call.end, begin), end)
        if at >= split:
            return self.device_late(at, (begin, split, end), following, call)
        owner = call.thread
        if not THREADS[owner].python:
            owner = self.owner(following, call)
        return self.host_late(at, call, owner)

    def owner(self, event: Event, call: Call) -> int:
        before = [
            c
            for e in self.mine
            if e.stream == event.stream and (c := self.call_of.get(e.corr)) is not None
            if THREADS[c.thread].python and c.start <= call.start
        ]
        latest = max((c.start for c in before), default=None)
        # Where two launches began in one nanosecond either thread would do; the later event's wins.
        return [c for c in before if c.start == latest][-1].thread if before else -1

    def host_late(self, at: int, call: Call | None, owner: int) -> tuple[Cause, int]:
        if any(start <= at < start + dur for start, dur in self.world.stalls):
            return Cause.PROFILER, -1
        thread = call.thread if call is not None else -1
        for one in (thread, owner):
            active = [c for c in self.world.calls if c.thread == one and c.start <= at < c.end]
            if active:
                return min((self.meaning(c) for c in active), key=lambda m: m[0])[1]
        if call is not None and not THREADS[thread].python and owner == thread:
            owner = -1
        labels = [
            cause for who, start, dur, cause in self.world.labels
            if who == owner and start <= at < start + dur
        ]  # fmt: skip
        return (min(labels) if labels else Cause.HOST_UNATTRIBUTED), -1

    def meaning(self, call: Call) -> tuple[tuple[int, int], tuple[Cause, int]]:
        target = next((s.device for s in self.world.syncs if s.corr == call.corr), -1)
        ran = [e.device for e in self.world.events if e.corr == call.corr]
        target = ran[-1] if ran else target
        other = target if target != self.device else -1
        if call.kind == ApiKind.SYNC:
            return (2, target), (Cause.HOST_SYNC, other)
        if call.kind in (ApiKind.ALLOC, ApiKind.FREE):
            return (3, 0), (Cause.ALLOCATOR, -1)
        if call.kind not in LAUNCHING:
            return (4, 0), (Cause.HOST_API, -1)
        order = (1 if call.kind == ApiKind.COPY else 0, target)
        if target == -1:
            return order, (Cause.HOST_API, -1)
        if target != self.device:
            return order, (Cause.SERVING_DEVICE, target)
        return order, (Cause.COPY_CALL if order[0] else Cause.LAUNCH_CALL, -1)

    def device_late(
        self, at: int, gap: tuple[int, int, int], event: Event, call: Call
    ) -> tuple[Cause, int]:
        begin, split, end = gap
        until, partner = split, -1
        if self.told_to_wait(event, call):
            for device in self.world.calibrations:
                if device != self.device:
                    ends = [e.end for e in self.events_of(device) if e.end <= end]
                    last = max(ends, default=0)
                    if last > until and end - last <= DEPENDENCY_TOLERANCE_NS:
                        until, partner = last, device
        if at < until:
            return Cause.STREAM_DEPENDENCY, partner
        latency, spacing = self.calibration.latency_ns, self.calibration.spacing_ns
        if partner >= 0:
            return (Cause.LAUNCH_LATENCY if at >= end - latency else Cause.DEVICE_OTHER), -1
        if call.end + latency <= begin:
            return (Cause.SPACING if at >= end - spacing else Cause.DEVICE_OTHER), -1
        ordinary = max(latency - max(begin - call.end, 0), spacing)
        return (Cause.LAUNCH_LATENCY if at >= end - ordinary else Cause.DEVICE_OTHER), -1

    def told_to_wait(self, event: Event, call: Call) -> bool:
        calls = {c.corr: c for c in self.world.calls}
        waits = [s for s in self.world.syncs if s.kind == SyncKind.WAIT_EVENT]
        if waits:
            told = [
                calls[s.corr].start
                for s in waits
                if (s.device, s.stream) == (self.device, event.stream)
            ]
            launched = [
                self.call_of[e.corr].start
                for e in self.mine
                if e.stream == event.stream and e.corr in self.call_of
            ]
        else:
            own = [c for c in self.world.calls if c.thread == call.thread]
            told = [c.start for c in own if c.kind == ApiKind.WAIT_EVENT]
            launched = [c.start for c in own if c.kind in LAUNCHING]
        return max((t for t in told if t < call.start), default=-1) > max(
            (t for t in launched if t < call.start), default=-1
        )


@settings(max_examples=150, deadline=None)
@given(worlds(), st.booleans())
def test_every_nanosecond_has_the_oracles_label(world: World, with_labels: bool) -> None:
    if not with_labels:
        world = World(world.events, world.calls, world.syncs, world.stalls, [], world.calibrations)
    timeline = timeline_of(world)
    ledgers = partition(
        timeline,
        match_launches(timeline),
        world.calibrations,
        labels_of(world) if with_labels else None,
    )
    for ledger in ledgers:
        oracle = Oracle(world, ledger.device)
        expected = [oracle.label(at) for at in range(WINDOW.start_ns, WINDOW.end_ns)]
        segments = ledger.segments
        found = [
            (Cause(cause), partner)
            for cause, partner, length in zip(
                segments.cause.tolist(), segments.partner.tolist(), segments.dur_ns.tolist()
            )
            for _ in range(length)
        ]
        assert found == expected
        assert sum(row.ns for row in ledger.rows) == WINDOW.wall_ns
        assert {(row.cause, row.partner): row.ns for row in ledger.rows} == {
            key: expected.count(key) for key in set(expected)
        }
