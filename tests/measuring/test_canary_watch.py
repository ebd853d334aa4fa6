"""A pipeline that runs itself is not cut: its canaries run before and after the pass."""

from __future__ import annotations

import threading
import time

from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.measuring.watch import watch_pipeline
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeDevices


def test_canaries_of_a_watched_pipeline_frame_the_pass_and_leave_the_device_alone() -> None:
    recorder, over = Recorder(SystemClock()), threading.Event()

    def work() -> None:
        with recorder.worker("target", counts=True):
            while not over.is_set():
                time.sleep(0.001)
                recorder.step_end(tokens=10)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        found = watch_pipeline(
            None,
            recorder,
            Budget(steps=20, warmup_steps=5),
            FakeDevices(("cuda:0",)),
            SystemClock(),
        )
    finally:
        over.set()
        thread.join()

    assert {one.where for one in found.canaries} == {"before", "after"}
    assert {(one.name, one.device) for one in found.canaries} == {("host_loop", None)}
    (marks,) = found.marks
    assert marks.pauses_ns == []
    assert marks.window_ns is not None
    for one in found.canaries:
        inside = [marks.window_ns[0] <= at <= marks.window_ns[1] for at in one.times_ns]
        assert not any(inside), one
