from __future__ import annotations

import queue
import threading
from typing import Any

import pytest
from dflash.hidden_queue import HiddenStateQueue, QueueClosedError


def test_items_come_out_in_order_and_the_depth_is_a_bound() -> None:
    q: HiddenStateQueue[int] = HiddenStateQueue(2)
    q.put(1)
    q.put(2)
    with pytest.raises(queue.Full):
        q.put(3, block=False)
    with pytest.raises(queue.Full):
        q.put(3, timeout=0.001)
    assert [q.get(), q.get()] == [1, 2]
    with pytest.raises(queue.Empty):
        q.get(timeout=0.001)


def test_after_running_dry_nothing_comes_before_the_low_water_mark() -> None:
    q: HiddenStateQueue[int] = HiddenStateQueue(5, min_ready=3)
    for round_ in range(2):
        for number in range(2):
            q.put(number)
            with pytest.raises(queue.Empty):
                q.get(block=False)
        q.put(2)
        assert [q.get(block=False) for _ in range(3)] == [0, 1, 2], f"round {round_}"


def test_a_queue_that_has_not_run_dry_gives_single_items() -> None:
    q: HiddenStateQueue[int] = HiddenStateQueue(5, min_ready=2)
    for number in range(3):
        q.put(number)
    assert [q.get(), q.get()] == [0, 1]
    q.put(3)
    assert [q.get(block=False), q.get(block=False)] == [2, 3]


@pytest.mark.parametrize("ready", [0, 6])
def test_a_low_water_mark_beyond_the_depth_is_refused(ready: int) -> None:
    with pytest.raises(ValueError, match=f"min_ready={ready} is not between 1 and depth=5"):
        HiddenStateQueue(5, min_ready=ready)


@pytest.mark.parametrize("full", [True, False])
def test_closing_wakes_whoever_waits(full: bool) -> None:
    q: HiddenStateQueue[int] = HiddenStateQueue(1)
    if full:
        q.put(0)
    raised: list[BaseException] = []

    def wait() -> None:
        call: Any = (lambda: q.put(1)) if full else q.get
        try:
            call()
        except QueueClosedError as error:
            raised.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    q.close()
    for thread in threads:
        thread.join(10)
    assert len(raised) == 3
    with pytest.raises(QueueClosedError):
        q.get()


def test_reaching_the_low_water_mark_wakes_everybody() -> None:
    q: HiddenStateQueue[int] = HiddenStateQueue(5, min_ready=3)
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(q.get())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(3):
        q.put(number)
    for thread in threads:
        thread.join(10)
    assert sorted(got) == [0, 1, 2]
