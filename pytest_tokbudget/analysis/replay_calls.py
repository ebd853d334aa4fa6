"""The host events of a replay that wait: synchronizations, copies, frees, queues."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .replay_plan import Plan
from .replay_program import CallKind, Waits
from .replay_streams import Streams
from .timeline import IntArray

Key: TypeAlias = tuple[str, int, int]
"""Something that happens once: ``("kernel", k, 0)``, ``("put", queue, item)``, ``("get", …)``."""


class Calls:
    """Makes calls one by one, in the order of time."""

    def __init__(self, plan: Plan, streams: Streams, first_kernel: IntArray, gate: IntArray):
        self._streams = streams
        # Plain element access through memoryviews is several times faster than through numpy.
        self._first, self._gate = first_kernel.data, gate.data
        self._waits = np.ascontiguousarray(plan.waits).data
        self._cost = np.ascontiguousarray(plan.call_ns).data
        target, after = plan.program.host.target, plan.device.after
        self._target, self._item = target.data, np.ascontiguousarray(plan.item).data
        self._after = np.ascontiguousarray(after).data
        self._lead = np.ascontiguousarray(plan.device.lag_ns).data
        self._awaited = {int(one) for one in after[after >= 0]}
        self._awaited |= {int(one) for one in target[plan.waits == Waits.KERNEL]}
        self._capacity = plan.program.queue_capacity
        self._kind = plan.program.host.kind
        self._done: dict[Key, float] = {}
        queue_ops = np.flatnonzero((plan.waits == Waits.PUT) | (plan.waits == Waits.GET))
        self._recorded = {self._key(int(at)) for at in queue_ops}

    def _key(self, at: int) -> Key:
        side = "get" if self._kind[at] == CallKind.GET else "put"
        return side, int(self._target[at]), int(self._item[at])

    def missing(self, at: int) -> Key | None:
        """What call ``at`` waits for and has not happened yet."""
        for kernel in range(self._first[at], self._first[at + 1]):
            after = self._after[kernel]
            if after >= 0 and not self._happened(("kernel", after, 0)):
                return ("kernel", after, 0)
        key_or_none = self._partner(at)
        return None if key_or_none is None or self._happened(key_or_none) else key_or_none

    def _happened(self, key: Key) -> bool:
        if key in self._done:
            return True
        return key[0] == "kernel" and not np.isnan(self._streams.end_of(key[1]))

    def _partner(self, at: int) -> Key | None:
        """The event elsewhere that must come first, if the window holds it."""
        waits = self._waits[at]
        if waits < Waits.KERNEL or waits == Waits.COPY:
            return None
        target, item = self._target[at], self._item[at]
        if waits == Waits.KERNEL:
            return ("kernel", target, 0)
        key: Key | None = None
        if waits == Waits.GET:
            key = ("put", target, item)
        elif waits == Waits.PUT and self._capacity[target] > 0:
            key = ("get", target, item - self._capacity[target])
        return key if key in self._recorded else None

    def let_go(self, key: Key) -> None:
        """Stop waiting for something that never happens."""
        self._done[key] = 0.0

    def make(self, at: int, now: float) -> float:
        """Make call ``at`` at ``now``; return when it ends."""
        first, last = self._first[at], self._first[at + 1]
        if self._waits[at] == Waits.COPY:
            ends = [
                self._streams.launch_one(kernel, now + self._lead[kernel])
                for kernel in range(first, last)
            ]
            return max(ends, default=now) + self._cost[at]
        end = max(now, self._release(at, first, last)) + self._cost[at]
        for kernel in range(first, last):
            self._streams.launch_one(kernel, end + self._streams.latency_of(kernel))
        return end

    def _release(self, at: int, first: int, last: int) -> float:
        """When what call ``at`` waits for is over."""
        waits, target = self._waits[at], self._target[at]
        release = 0.0
        if waits == Waits.DEVICE:
            release = self._streams.device_free(target)
        elif waits == Waits.STREAM:
            release = self._streams.stream_free(target)
        elif waits != Waits.NOTHING:
            key = self._partner(at)
            if key is not None:
                release = self._when(key)
        for kernel in range(first, last):
            gate = self._gate[kernel]
            if gate >= 0 and not np.isnan(self._streams.end_of(gate)):
                release = max(release, self._streams.start_of(gate))
        return release

    def _when(self, key: Key) -> float:
        found = self._done.get(key)
        return self._streams.end_of(key[1]) if found is None else found

    def news(self, at: int, end: float) -> list[Key]:
        """What has happened with call ``at``, for those who may wait for it."""
        keys: list[Key] = []
        if self._waits[at] in (Waits.PUT, Waits.GET):
            keys.append(self._key(at))
            self._done[keys[0]] = end
        if self._awaited:
            kernels = range(self._first[at], self._first[at + 1])
            keys += [("kernel", one, 0) for one in kernels if one in self._awaited]
        return keys

    def awaited_in(self, first: int, last: int) -> list[Key]:
        """Those of a range of kernels that others may wait for."""
        return [("kernel", one, 0) for one in self._awaited if first <= one < last]
