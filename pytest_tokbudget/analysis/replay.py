"""Runs a plan: when every host event ends and every kernel runs, and how long the window lasts.

Between events that wait for something a lane is a cumulative sum and a stream a running maximum
(``replay_streams``); only waiting events, and lanes that share a device or the interpreter's lock,
are taken one by one, in the order of time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .replay_calls import Calls, Key
from .replay_plan import Plan
from .replay_program import FloatArray, Waits
from .replay_streams import Streams
from .timeline import BoolArray, IntArray

SWITCH_NS = 5_000_000.0
"""The interpreter asks a thread to give the lock away after this (``sys.getswitchinterval``)."""

_Entry: TypeAlias = tuple[float, int, bool]
"""When, which lane, and whether only its call is left (the time before it is spent)."""


@dataclass(frozen=True, slots=True)
class Replay:
    """``wall_ns`` is the length of the replayed window; ``kernel_end_ns`` is by kernel of the
    program; ``stuck`` counts waits that could never be met and were let go (marks that contradict
    each other)."""

    wall_ns: float
    lane_end_ns: tuple[float, ...]
    kernel_end_ns: FloatArray
    stuck: int = 0


def replay(plan: Plan) -> Replay:
    """Run a plan."""
    return _Run(plan).run()


class _Run:
    def __init__(self, plan: Plan) -> None:
        self._plan, self._program = plan, plan.program
        self._spent = plan.own_ns + plan.sleep_ns + plan.wait_ns
        self._until = np.cumsum(self._spent + plan.call_ns)
        launched = np.bincount(plan.device.call, minlength=len(self._spent))
        self._first = np.concatenate(([0], np.cumsum(launched)))
        self._gate = _launch_gates(plan)
        self._streams = Streams(plan)
        self._calls = Calls(plan, self._streams, self._first, self._gate)
        self._bounds = [int(one) for one in self._program.lane_bounds]
        self._single = _one_by_one(plan)
        self._direct = _own_streams(plan) & (plan.waits == Waits.NOTHING)
        # Plain element access through memoryviews is several times faster than through numpy.
        self._gil = plan.gil_ns.data
        idle = plan.sleep_ns + plan.wait_ns
        first = np.where(self._program.host.idle_first & (plan.gil_ns > 0), idle, 0.0)
        self._before = first.data
        self._after = (self._spent - plan.gil_ns - first).data
        self._cuts = np.flatnonzero(self._single)
        self._at = self._bounds[:-1].copy()
        self._parked: dict[Key, list[tuple[float, int]]] = {}
        self._heap: list[_Entry] = [(0.0, lane, False) for lane in range(len(self._at))]
        self._lock_free = 0.0
        self._gil_left: dict[int, float] = {}
        self._stuck = 0

    def run(self) -> Replay:
        ends = [0.0] * len(self._at)
        while self._heap or self._parked:
            if not self._heap:
                self._let_go()
            now, lane, spent = heapq.heappop(self._heap)
            at = self._at[lane]
            if at == self._bounds[lane + 1]:
                ends[lane] = now
            elif not self._single[at]:
                self._run_stretch(lane, now)
            elif spent:
                self._call(lane, now)
            else:
                heapq.heappush(self._heap, self._spend(lane, now))
        wall = ends[self._program.main]
        for stream in self._program.closing_streams:
            wall = max(wall, self._streams.stream_free(stream))
        return Replay(wall, tuple(ends), self._streams.ends_ns, self._stuck)

    def _run_stretch(self, lane: int, now: float) -> None:
        """Run a lane's events up to the next one that must be taken by itself."""
        first, stop = self._at[lane], self._bounds[lane + 1]
        cut = int(np.searchsorted(self._cuts, first))
        if cut < len(self._cuts):
            stop = min(stop, int(self._cuts[cut]))
        limit = self._program.launch_limit
        if limit:
            # No launch may depend on a kernel of its own stretch.
            stop = min(stop, first + max(limit // 2, 1))
        self._at[lane] = stop
        base = self._until[first - 1] if first else 0.0
        ends = self._until[first:stop] - base + now
        low, high = int(self._first[first]), int(self._first[stop])
        if low < high:
            call = self._plan.device.call[low:high] - first
            if limit:
                ends = self._wait_for_room(ends, call, low, now)
            self._streams.launch(low, high, ends[call])
            self._wake(self._calls.awaited_in(low, high))
        heapq.heappush(self._heap, (float(ends[-1]), lane, False))

    def _wait_for_room(self, ends: FloatArray, call: IntArray, low: int, now: float) -> FloatArray:
        """Hold launches back until the launch queue has room: again a running maximum."""
        gate = self._gate[low : low + len(call)]
        gated = np.flatnonzero(gate >= 0)
        starts = self._streams.ends_ns[gate[gated]] - self._plan.device.dur_ns[gate[gated]]
        release = np.full(len(ends), now)
        np.maximum.at(release, call[gated], np.nan_to_num(starts))
        late: FloatArray = np.maximum.accumulate(np.maximum(release - ends, 0.0))
        return ends + late

    def _spend(self, lane: int, now: float) -> _Entry:
        """Spend the time before a lane's next call: with the lock in turns, then without it."""
        at = self._at[lane]
        need = self._gil_left.pop(lane, -1.0)
        if need < 0:
            need = self._gil[at]
            if self._before[at] > 0:
                self._gil_left[lane] = need
                return now + self._before[at], lane, False
        if need > 0:
            turn = min(need, SWITCH_NS)
            now = self._lock_free = max(now, self._lock_free) + turn
            if need > turn:
                self._gil_left[lane] = need - turn
                return now, lane, False
        now += self._after[at]
        if not self._direct[at]:
            return now, lane, True
        self._at[lane] += 1
        return self._calls.make(at, now), lane, False

    def _call(self, lane: int, now: float) -> None:
        """Make a lane's next call, or park the lane until it can be made."""
        at = self._at[lane]
        missing = self._calls.missing(at)
        if missing is not None:
            self._parked.setdefault(missing, []).append((now, lane))
            return
        end = self._calls.make(at, now)
        self._at[lane] += 1
        heapq.heappush(self._heap, (end, lane, False))
        self._wake(self._calls.news(at, end))

    def _wake(self, keys: list[Key]) -> None:
        for key in keys:
            for when, lane in self._parked.pop(key, []):
                heapq.heappush(self._heap, (when, lane, True))

    def _let_go(self) -> None:
        """Every lane waits for another: let the one go that has waited the longest."""
        key = min(self._parked, key=lambda one: min(self._parked[one]))
        self._stuck += 1
        self._calls.let_go(key)
        self._wake([key])


def _one_by_one(plan: Plan) -> BoolArray:
    """Events that must be taken by themselves, in the order of time."""
    program, device = plan.program, plan.device
    lanes = len(program.lane_bounds) - 1
    single: BoolArray = plan.waits != Waits.NOTHING
    single[device.call[device.after >= 0]] = True
    if lanes > 1:
        lane = np.searchsorted(program.lane_bounds, device.call, side="right") - 1
        of_device = program.stream_device[device.stream]
        if plan.gil_ns.any() or len(_used_by_several(of_device, lane)):
            single[:] = True
    return single


def _own_streams(plan: Plan) -> BoolArray:
    """Events whose kernels nobody else's can come before: streams of one lane, no waits between
    streams. Such calls need not be made in the order of time."""
    program, device = plan.program, plan.device
    lane = np.searchsorted(program.lane_bounds, device.call, side="right") - 1
    shared = np.isin(device.stream, _used_by_several(device.stream, lane))
    result = np.ones(len(plan.waits), np.bool_)
    if (device.after >= 0).any() or (plan.waits == Waits.KERNEL).any():
        result[device.call] = False
    result[device.call[shared]] = False
    return result


def _used_by_several(what: npt.NDArray[np.integer], lane: IntArray) -> IntArray:
    """Those streams or devices that more than one lane uses; one entry a kernel in both columns."""
    lanes = int(lane.max(initial=0)) + 1
    pairs = np.unique(what.astype(np.int64) * lanes + lane)
    used, count = np.unique(pairs // lanes, return_counts=True)
    result: IntArray = used[count > 1]
    return result


def _launch_gates(plan: Plan) -> IntArray:
    """Per kernel: the one that must have begun before its launch finds room (−1: none)."""
    gate = np.full(len(plan.device), -1, np.int64)
    limit = plan.program.launch_limit
    if limit:
        for stream in range(len(plan.program.stream_device)):
            mine = np.flatnonzero(plan.device.stream == stream)
            gate[mine[limit:]] = mine[:-limit]
    return gate
