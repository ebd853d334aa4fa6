"""The queue proxy over several kinds of queues."""

from __future__ import annotations

import queue
import threading
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.errors import UsageError
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.measuring.snapshot import repaired
from pytest_tokbudget.records.marks import QueueSeries
from pytest_tokbudget.testing import FakeClock


class Other:
    """A queue of nobody's kind, whose size is not to be had."""

    def __init__(self) -> None:
        self.items: list[object] = []
        self.colour = "green"

    def put(self, item: object) -> None:
        self.items.append(item)

    def get(self) -> object:
        return self.items.pop(0)

    def qsize(self) -> int:
        raise NotImplementedError


KINDS = [lambda: queue.Queue(5), queue.SimpleQueue, queue.LifoQueue, queue.PriorityQueue]


@pytest.mark.parametrize("make", KINDS)
def test_calls_are_numbered_with_depth(make: Any) -> None:
    recorder = Recorder(FakeClock())
    q = recorder.queue(make(), "hs", low_water=1)
    for i in range(3):
        q.put(i)
    q.put_nowait(3)
    assert sorted([q.get(), q.get_nowait()]) in ([0, 1], [2, 3])
    assert q.qsize() == 2
    assert not q.empty()
    put, get = sorted(recorder.queue_series(), key=lambda one: one.side, reverse=True)
    assert (put.side, put.sequence, put.depth) == ("put", [0, 1, 2, 3], [1, 2, 3, 4])
    assert (get.side, get.sequence, get.depth) == ("get", [0, 1], [3, 2])
    assert put.low_water == 1


def test_capacity_is_known_where_the_queue_tells() -> None:
    recorder = Recorder(FakeClock())
    recorder.queue(queue.Queue(5), "a").put(1)
    recorder.queue(queue.Queue(), "b").put(1)
    recorder.queue(Other(), "c").put(1)
    assert [(one.queue, one.capacity) for one in recorder.queue_series()] == [
        ("a", 5),
        ("b", None),
        ("c", None),
    ]
    with pytest.raises(UsageError, match="'a'"):
        recorder.queue(queue.Queue(), "a")


def test_any_queue_with_put_and_get_works_and_keeps_its_own_attributes() -> None:
    recorder = Recorder(FakeClock())
    q = recorder.queue(Other())
    q.put("x")
    assert q.get() == "x"
    assert q.colour == "green"
    assert "Other" in repr(q)
    assert [one.depth for one in recorder.queue_series()] == [[-1], [-1]]


def test_multiprocessing_queues_work() -> None:
    import multiprocessing

    recorder = Recorder(SystemClock())
    raw = multiprocessing.get_context("spawn").Queue(3)
    q = recorder.queue(raw, "mp")
    q.put("x")
    assert q.get(timeout=20) == "x"
    q.close()
    raw.join_thread()
    assert [one.capacity for one in recorder.queue_series()] == [3, 3]


def test_what_the_queue_raises_goes_on_and_only_a_wait_is_recorded() -> None:
    recorder = Recorder(FakeClock())
    q = recorder.queue(queue.Queue(1), "hs")
    for call in (q.get_nowait, lambda: q.get(False), lambda: q.get(block=False)):
        with pytest.raises(queue.Empty):
            call()
    assert recorder.queue_series() == []
    with pytest.raises(queue.Empty):
        q.get(timeout=0.001)
    q.put(1)
    with pytest.raises(queue.Full):
        q.put(2, True, 0.001)
    by_side = {one.side: one for one in recorder.queue_series()}
    assert by_side["get"].sequence == [-1]
    assert by_side["put"].sequence == [0, -1]
    assert all(stream.quiet == 0 for stream in recorder.streams())


@pytest.mark.parametrize("make", [lambda: queue.Queue(3), queue.SimpleQueue])
def test_a_get_never_ends_before_the_put_of_its_item(make: Any) -> None:
    recorder = Recorder(SystemClock())
    q = recorder.queue(make(), "hs")
    each, threads = 300, []

    def produce(i: int) -> None:
        with recorder.worker(f"p{i}"):
            for _ in range(each):
                q.put(i)

    def consume(i: int) -> None:
        with recorder.worker(f"c{i}"):
            for _ in range(each):
                q.get(timeout=20)

    for i in range(2):
        threads += [threading.Thread(target=target, args=(i,)) for target in (produce, consume)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    ends: dict[str, dict[int, int]] = {"put": {}, "get": {}}
    for series in recorder.queue_series():
        ends[series.side].update(zip(series.sequence, series.end_ns, strict=True))
        assert all(a <= b for a, b in zip(series.start_ns, series.end_ns, strict=True))
    assert sorted(ends["put"]) == sorted(ends["get"]) == list(range(2 * each))
    assert all(ends["put"][n] <= ends["get"][n] for n in ends["put"])


def test_a_blocked_put_is_the_producers_wait() -> None:
    recorder = Recorder(SystemClock())
    raw: queue.Queue[int] = queue.Queue(1)
    q = recorder.queue(raw, "hs")
    q.put(0)
    producer = threading.Thread(target=lambda: q.put(1), name="producer")
    producer.start()
    while not any(stream.quiet for stream in recorder.streams()):
        pass
    freed_ns = SystemClock().monotonic_ns()
    assert q.get() == 0
    producer.join(10)
    (blocked,) = [one for one in recorder.queue_series() if one.worker == "producer"]
    assert blocked.start_ns[0] <= freed_ns <= blocked.end_ns[0]


def test_a_put_seen_to_end_after_its_get_is_repaired() -> None:
    def one(side: str, start: int, end: int) -> QueueSeries:
        return QueueSeries(
            queue="q", side=side, worker=side, start_ns=[start], end_ns=[end], sequence=[0],
            depth=[0],
        )  # fmt: skip

    late = one("put", 10, 90)
    assert repaired([late, one("get", 20, 50)])[0].end_ns == [50]
    assert repaired([one("put", 60, 90), one("get", 20, 50)])[0].end_ns == [60]
    gave_up = msgspec.structs.replace(late, sequence=[-1])
    assert repaired([gave_up, one("get", 20, 50)])[0].end_ns == [90]


def test_a_call_that_never_returns_or_is_ended_by_an_error_is_a_wait() -> None:
    clock = FakeClock()
    recorder = Recorder(clock)
    inner: queue.Queue[int] = queue.Queue(2)
    measured = recorder.queue(inner, name="items")
    entered = threading.Event()

    class ClosedError(Exception):
        pass

    def closed(*_: object, **__: object) -> int:
        raise ClosedError

    def read() -> None:
        with recorder.worker("reader", role="drafter"):
            entered.set()
            measured.get()

    reader = threading.Thread(target=read)
    reader.start()
    entered.wait()
    while not any(one.waits_in for one in recorder.streams()):
        pass
    clock.advance(5.0)
    (series,) = recorder.queue_series()
    assert (series.side, series.worker, series.sequence) == ("get", "reader", [-1])
    assert series.end_ns[0] - series.start_ns[0] == 5_000_000_000

    measured.put(1)
    reader.join()
    assert [one.sequence for one in recorder.queue_series() if one.side == "get"] == [[0]]
    inner.get = closed  # type: ignore[method-assign]
    with pytest.raises(ClosedError):
        measured.get()
    (mine,) = (
        one for one in recorder.queue_series() if one.worker == "MainThread" and one.side == "get"
    )
    assert mine.sequence == [-1]
