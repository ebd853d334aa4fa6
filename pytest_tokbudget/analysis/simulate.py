"""A small discrete-event simulator of threads, the interpreter's lock, queues, streams and devices.

It runs a made-up program with and without a tracer, so that what a fault truly costs is known. It
shares no code with the replay: threads are processes that wait for signals, streams are servers,
and time advances from event to event.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .simulate_program import Machine, Op, OpKind, Span, Trace

SWITCH_NS = 5_000_000


class _Signal:
    """Something threads and streams wait for."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def fire(self) -> None:
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            one()


@dataclass(slots=True)
class _Work:
    """One kernel or copy on its way."""

    op: Op
    call: int
    after: list[_Work]
    done: bool = False
    finished: _Signal = field(default_factory=_Signal)


class _Stream:
    """Serves its work in order."""

    def __init__(self, sim: Simulator, index: int) -> None:
        self._sim, self._index = sim, index
        self._queue: deque[_Work] = deque()
        self._busy = False
        self._last_end = -(10**12)
        self.pending: list[_Work] = []

    def push(self, work: _Work) -> None:
        self._queue.append(work)
        self._next()

    def _next(self) -> None:
        if self._busy or not self._queue:
            return
        work = self._queue[0]
        blocking = next((one for one in work.after if not one.done), None)
        if blocking is not None:
            blocking.finished.waiting.append(self._next)
            return
        self._queue.popleft()
        self._busy = True
        start = max(self._sim.now, self._last_end + self._sim.machine.spacing_ns)
        self._sim.at(start + work.op.device_ns, lambda: self._finish(work, start))

    def _finish(self, work: _Work, start: int) -> None:
        self._busy, self._last_end = False, self._sim.now
        work.done = True
        self.pending.remove(work)
        self._sim.trace.kernels.append(Span(self._index, start, self._sim.now, work.op, work.call))
        work.finished.fire()
        self._next()


class Simulator:
    """Runs programs (one list of instructions a thread) on a machine.

    The interpreter's lock serves threads in turn; who holds it gives it away after 5 ms if another
    waits. Native instructions and calls do not need it.
    """

    def __init__(self, machine: Machine, programs: list[list[Op]]) -> None:
        self.machine, self.trace, self.now = machine, Trace(), 0
        self._programs = programs
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._streams = [_Stream(self, one) for one in range(len(machine.stream_device))]
        self._gates: dict[int, list[_Work]] = {}
        self._lock_queue: deque[_Signal] = deque()
        self._lock_held = False
        self._room = list(machine.capacity)
        self._items, self._puts, self._gets = ([0] * len(machine.capacity) for _ in range(3))
        self._changed = [_Signal() for _ in machine.capacity]

    def at(self, time_ns: int, do: Callable[[], None]) -> None:
        """Do something at a later moment."""
        self._order += 1
        heapq.heappush(self._events, (time_ns, self._order, do))

    def run(self) -> Trace:
        """Run everything to its end; raises ``RuntimeError`` when threads wait for each other."""
        for thread in range(len(self._programs)):
            self._resume(self._thread(thread))
        while self._events:
            self.now, _, do = heapq.heappop(self._events)
            do()
        if len(self.trace.end_ns) < len(self._programs):
            raise RuntimeError("deadlock: threads of the simulated program wait for each other")
        return self.trace

    def _resume(self, process: Iterator[int | _Signal]) -> None:
        for wish in process:
            if isinstance(wish, _Signal):
                wish.waiting.append(lambda: self._resume(process))
                return
            if wish > 0:
                self.at(self.now + wish, lambda: self._resume(process))
                return

    def _thread(self, thread: int) -> Iterator[int | _Signal]:
        for op in self._programs[thread]:
            start = self.now
            if op.kind is OpKind.PYTHON:
                yield from self._python(op)
            elif op.kind is OpKind.SLEEP:
                yield op.ns
            elif op.kind in (OpKind.PUT, OpKind.GET):
                yield from self._queue_op(thread, op)
            else:
                yield from self._api(thread, op)
            if op.kind is OpKind.SLEEP or op.name:
                self.trace.stretches.append(Span(thread, start, self.now, op))
        self.trace.end_ns[thread] = self.now

    def _python(self, op: Op) -> Iterator[int | _Signal]:
        if op.native:
            yield op.ns
            return
        left = op.ns
        while left > 0:
            if self._lock_held:
                turn = _Signal()
                self._lock_queue.append(turn)
                yield turn
            self._lock_held = True
            part = min(left, SWITCH_NS)
            yield part
            left -= part
            self._lock_held = False
            if self._lock_queue:
                # Handed over, not raced for: the one that waited longest gets it.
                self._lock_held = True
                self._lock_queue.popleft().fire()

    def _queue_op(self, thread: int, op: Op) -> Iterator[int | _Signal]:
        start, queue = self.now, op.other
        putting = op.kind is OpKind.PUT
        wanted, given = (self._room, self._items) if putting else (self._items, self._room)
        while wanted[queue] == 0:
            yield self._changed[queue]
        wanted[queue] -= 1
        side = self._puts if putting else self._gets
        item, side[queue] = side[queue], side[queue] + 1
        yield self.machine.queue_ns
        given[queue] += 1
        self.trace.queue_ops.append(Span(thread, start, self.now, op, item))
        self._changed[queue].fire()

    def _api(self, thread: int, op: Op) -> Iterator[int | _Signal]:
        cost = self.machine.tracer_ns
        yield cost // 2
        start, call = self.now, len(self.trace.calls)
        self.trace.calls.append(Span(thread, start, start, op))
        if op.kind is OpKind.LAUNCH:
            yield from self._until_room(self._streams[op.stream])
        yield op.ns + cost - cost // 2 if op.kind in (OpKind.LAUNCH, OpKind.MALLOC) else 0
        if op.kind in (OpKind.LAUNCH, OpKind.COPY_OUT):
            work = self._submit(op, call)
            if op.kind is OpKind.COPY_OUT:
                yield from self._until_done([work])
        elif op.kind is OpKind.STREAM_WAIT:
            self._gates.setdefault(op.stream, []).extend(self._streams[op.other].pending)
        elif op.kind is OpKind.SYNC_STREAM:
            yield from self._until_done(list(self._streams[op.stream].pending))
        elif op.kind in (OpKind.SYNC_DEVICE, OpKind.FREE):
            yield from self._until_done(
                [
                    work
                    for stream, device in zip(self._streams, self.machine.stream_device)
                    for work in stream.pending
                    if device == op.stream
                ]
            )
        if op.kind not in (OpKind.LAUNCH, OpKind.MALLOC):
            yield op.ns + cost - cost // 2
        self.trace.calls[call] = Span(thread, start, self.now, op)

    def _until_room(self, stream: _Stream) -> Iterator[_Signal]:
        while len(stream.pending) >= self.machine.launch_limit:
            yield stream.pending[0].finished

    def _submit(self, op: Op, call: int) -> _Work:
        work = _Work(op, call, self._gates.pop(op.stream, []))
        stream = self._streams[op.stream]
        stream.pending.append(work)
        self.at(self.now + self.machine.latency_ns, lambda: stream.push(work))
        return work

    def _until_done(self, works: list[_Work]) -> Iterator[_Signal]:
        for work in works:
            while not work.done:
                yield work.finished
