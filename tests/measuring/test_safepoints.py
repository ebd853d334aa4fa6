"""Holding real threads at their marks and queue calls."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder


class Crew:
    """Threads that mark for ever, until told to stop."""

    def __init__(self) -> None:
        self.recorder = Recorder(SystemClock())
        self.stop = threading.Event()
        self.threads: list[threading.Thread] = []

    def start(self, name: str, work: object) -> None:
        def run() -> None:
            with self.recorder.worker(name):
                while not self.stop.is_set():
                    work()  # type: ignore[operator]

        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()

    def marks(self, name: str) -> int:
        return sum(one.mark_count for one in self.recorder.streams() if one.name == name)

    def until_marked(self, name: str) -> None:
        start = self.marks(name)
        while self.marks(name) <= start:
            pass


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew()
    yield made
    made.stop.set()
    made.recorder.release()
    for thread in made.threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in made.threads)


def test_all_workers_stand_until_released(crew: Crew) -> None:
    for name in ("a", "b"):
        crew.start(name, crew.recorder.step_end)
        crew.until_marked(name)
    assert crew.recorder.hold() == []
    counts = [crew.marks("a"), crew.marks("b")]
    assert not threading.Event().wait(0.05)
    assert [crew.marks("a"), crew.marks("b")] == counts
    crew.recorder.release()
    crew.until_marked("a")
    crew.until_marked("b")


def test_only_the_named_worker_stands(crew: Crew) -> None:
    for name in ("a", "b"):
        crew.start(name, crew.recorder.step_end)
        crew.until_marked(name)
    assert crew.recorder.hold(["a"]) == []
    held = crew.marks("a")
    crew.until_marked("b")
    assert crew.marks("a") == held


def test_a_worker_blocked_in_a_queue_counts_as_standing_and_is_held_after_it(crew: Crew) -> None:
    q = crew.recorder.queue(queue.Queue(), "q")
    got: list[object] = []
    crew.start("consumer", lambda: got.append(q.get()))
    while not any(stream.quiet for stream in crew.recorder.streams()):
        pass
    assert crew.recorder.hold(["consumer"]) == []
    q.put(1)
    assert not threading.Event().wait(0.05)
    assert got == []
    crew.stop.set()
    crew.recorder.release()
    crew.threads[0].join(10)
    assert got == [1]


def test_a_worker_in_a_declared_wait_counts_as_standing(crew: Crew) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with crew.recorder.wait("copy"):
            inside.set()
            go_on.wait(10)

    crew.start("w", work)
    inside.wait(10)
    assert crew.recorder.hold() == []
    go_on.set()


def test_one_that_comes_to_no_safepoint_is_named(crew: Crew) -> None:
    crew.start("busy", lambda: crew.stop.wait(10))
    while not crew.recorder.streams():
        pass
    assert crew.recorder.hold(timeout_s=0.02) == ["busy"]


def test_the_coordinators_own_thread_is_never_held(crew: Crew) -> None:
    with crew.recorder.worker("me"):
        assert crew.recorder.hold() == []
        crew.recorder.step_end()


def test_one_that_ended_is_not_waited_for(crew: Crew) -> None:
    crew.start("short", crew.stop.set)
    crew.threads[0].join(10)
    thread = threading.Thread(target=crew.recorder.step_end, name="undeclared")
    thread.start()
    thread.join(10)
    assert crew.recorder.hold(timeout_s=5) == []
