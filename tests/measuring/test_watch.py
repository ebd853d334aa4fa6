"""The watcher with real threads; time is real, except where a stall has to be waited for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from pytest_tokbudget.errors import MeasureError, StallError, UsageError, WorkerDiedError
from pytest_tokbudget.measuring.beat import DONE, FAILED, TIMING, WARM_UP
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.measurement import Measured, Measurement
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.measuring.watch import watch_pipeline
from pytest_tokbudget.ports import Clock
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeClock, FakeDevices

POLL_S = 0.01


class Pipeline:
    """Threads that a test starts and this stops."""

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()
        self.devices = FakeDevices()
        self.recorder = Recorder(self.clock)
        self.stopped = threading.Event()
        self.threads: list[threading.Thread] = []
        self.raised: list[BaseException] = []

    def start(self, name: str, work: Callable[[], object], **declared: object) -> None:
        """Run ``work`` again and again as worker ``name``, until it returns ``False``."""

        def run() -> None:
            try:
                with self.recorder.worker(name, **declared):  # type: ignore[arg-type]
                    while not self.stopped.is_set() and work() is not False:
                        pass
            except (MeasureError, ValueError) as error:
                self.raised.append(error)

        thread = threading.Thread(target=run, name=f"thread-of-{name}")
        self.threads.append(thread)
        thread.start()

    def pause(self, seconds: float = 0.001) -> None:
        self.stopped.wait(seconds)

    def trainer(self, tokens: object = 100) -> Callable[[], None]:
        def step() -> None:
            self.pause()
            self.recorder.step_end(tokens)

        return step

    def watch(self, **budget: object) -> Measurement:
        wanted = Budget(**{"steps": 60, "warmup_steps": 10, **budget})  # type: ignore[arg-type]
        return watch_pipeline(self, self.recorder, wanted, self.devices, self.clock, poll_s=POLL_S)


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    made = Pipeline()
    yield made
    made.stopped.set()
    for thread in made.threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in made.threads)


def test_one_worker_is_measured_between_its_own_marks(pipeline: Pipeline) -> None:
    pipeline.start("d", pipeline.trainer(), counts=True, device="cuda:1")
    found = pipeline.watch()
    (series,) = found.marks
    assert series.window is not None
    assert series.window_ns is not None
    first, last = series.window
    assert first >= 9
    assert last - first == found.timing.steps == 60
    assert found.timing.tokens == {"real": 6000}
    assert series.times_ns[first] <= series.window_ns[0] <= series.times_ns[first + 1]
    assert series.times_ns[last] <= series.window_ns[1]
    assert (found.timing.start_ns, found.timing.end_ns) == series.window_ns
    # Its own device, in its own thread, at the two cuts and nowhere else.
    assert pipeline.devices.synchronized == [("cuda:1", "thread-of-d")] * 2
    assert found.devices == ["cuda:1"]
    assert pipeline.recorder.beat[3] == DONE
    assert Measured(found).step_ms.p50 > 0


def test_several_workers_add_up_over_their_own_windows(pipeline: Pipeline) -> None:
    for i in range(3):
        pipeline.start(f"d{i}", pipeline.trainer(), role="drafter", device=f"sim{i}")
    found = pipeline.watch()
    windows = [series.window for series in found.marks if series.window]
    assert len(windows) == 3
    assert 60 <= found.timing.steps <= 62
    by_hand = sum(
        100 * (one.window[1] - one.window[0]) * 1e9 / (one.window_ns[1] - one.window_ns[0])
        for one in found.marks
        if one.window and one.window_ns
    )
    assert found.timing.tok_s == pytest.approx(by_hand)
    assert sorted(pipeline.devices.synchronized) == sorted(
        [(f"sim{i}", f"thread-of-d{i}") for i in range(3)] * 2
    )


def test_a_fixed_warm_up_is_cut_when_it_is_over_and_not_at_the_next_look(
    pipeline: Pipeline,
) -> None:
    begun = threading.Event()

    def step() -> None:
        begun.wait(10)
        pipeline.pause(0.01)
        pipeline.recorder.step_end(5)

    pipeline.start("d", step, counts=True)
    # It looks up each minute only: the worker's 20th mark must wake it.
    begun.set()
    budget = Budget(steps=10, warmup_steps=20)
    while not pipeline.recorder.streams()[0].mark_count:
        pipeline.pause(0.001)
    found = watch_pipeline(
        None, pipeline.recorder, budget, pipeline.devices, pipeline.clock, poll_s=60
    )
    assert 20 <= found.warmup.steps < 60


def test_steady_state_is_found_in_a_running_pipeline(pipeline: Pipeline) -> None:
    hand_over = pipeline.recorder.queue(queue.Queue(8), "hs")

    def produce() -> None:
        pipeline.pause()
        try:
            hand_over.put(1, timeout=0.05)
        except queue.Full:
            return

    def consume() -> None:
        try:
            hand_over.get(timeout=0.05)
        except queue.Empty:
            return
        pipeline.recorder.step_end({"real": 90, "slots": 100})

    pipeline.start("target", produce, role="target")
    pipeline.start("drafter", consume, role="drafter")
    found = pipeline.watch(warmup_steps=None, steps=100, tolerance=0.9)
    assert found.warmup.steps >= 100
    assert found.timing.tokens == {"real": 9000, "slots": 10000}
    assert {one.worker for one in found.marks if one.counts} == {"drafter"}
    assert {(one.side, one.worker) for one in found.queues} == {
        ("put", "target"),
        ("get", "drafter"),
    }


@pytest.mark.parametrize(("factor", "steady"), [(1.0, True), (1.5, False)])
def test_a_pass_that_was_not_steady_is_said(
    pipeline: Pipeline, factor: float, steady: bool
) -> None:
    clock = FakeClock()
    pipeline.clock, pipeline.recorder = clock, Recorder(clock)
    timed = iter(range(10**6))

    def step() -> None:
        pipeline.pause()
        slow = pipeline.recorder.beat[3] == TIMING and next(timed) >= 50
        clock.advance(0.01 * (factor if slow else 1.0))
        pipeline.recorder.step_end(5)

    pipeline.start("d", step, counts=True)
    found = pipeline.watch(steps=100)
    assert found.warmup.steady == steady
    assert found.warmup.reason.startswith("in the timing pass step times changed by +") != steady


def test_constant_tokens_need_none_in_the_marks(pipeline: Pipeline) -> None:
    pipeline.start("d", pipeline.trainer(None), role="drafter")
    assert pipeline.watch(constant_tokens=7).timing.tokens == {"real": 420}


def test_a_dying_worker_fails_the_measurement_with_its_cause(pipeline: Pipeline) -> None:
    left = iter(range(5))

    def load() -> None:
        pipeline.pause()
        if next(left, None) is None:
            raise ValueError("bad shard 7")

    pipeline.start("d", pipeline.trainer(), counts=True)
    pipeline.start("loader-0", load, role="loader")
    with pytest.raises(
        WorkerDiedError, match=r"'loader-0' \(loader\).*ValueError: bad shard 7"
    ) as it:
        pipeline.watch(steps=100_000)
    assert it.value.__cause__ is pipeline.raised[0]
    assert pipeline.recorder.beat[1] == 0
    assert pipeline.recorder.beat[3] == FAILED + WARM_UP
    assert all(stream.hook is None for stream in pipeline.recorder.streams())


def test_a_worker_that_dies_of_a_bad_mark(pipeline: Pipeline) -> None:
    pipeline.start("d", pipeline.trainer(0), counts=True)
    with pytest.raises(WorkerDiedError, match=r"StepError.*given 0"):
        pipeline.watch()


def test_a_counting_worker_that_ends_too_early(pipeline: Pipeline) -> None:
    left = iter(range(40))
    step = pipeline.trainer()

    def limited() -> object:
        return False if next(left, None) is None else step()

    pipeline.start("d", limited, counts=True)
    with pytest.raises(WorkerDiedError, match=r"after \d+ of 60 steps of the timing pass.*'d'"):
        pipeline.watch()


def test_a_pipeline_that_ends_in_the_warm_up(pipeline: Pipeline) -> None:
    pipeline.start("d", lambda: pipeline.trainer()() or False, counts=True)
    with pytest.raises(WorkerDiedError, match="after 1 warm-up steps"):
        pipeline.watch()


def test_an_undeclared_thread_that_ends_too_early(pipeline: Pipeline) -> None:
    thread = threading.Thread(target=lambda: pipeline.recorder.step_end(5), name="loose")
    thread.start()
    thread.join(10)
    with pytest.raises(WorkerDiedError, match="'loose'"):
        pipeline.watch()


def test_several_roles_that_count_are_an_error(pipeline: Pipeline) -> None:
    pipeline.start("t", pipeline.trainer(), role="target")
    pipeline.start("d", pipeline.trainer(), role="drafter")
    with pytest.raises(UsageError, match="counts=True"):
        pipeline.watch(steps=100_000)


class Stalling:
    """A worker that stops marking when told; the fake clock then runs on by itself."""

    def __init__(self, pipeline: Pipeline, marks: int, then: Callable[[], object]) -> None:
        self.clock = FakeClock()
        pipeline.clock = self.clock
        pipeline.recorder = Recorder(self.clock)
        self._pipeline, self._left, self._then = pipeline, iter(range(marks)), then
        pipeline.start("d", self.step, role="drafter", counts=True)

    def step(self) -> None:
        if next(self._left, None) is None:
            self.stuck_in_all_gather()
        else:
            # The watcher must see the marks come, as it does on a real clock.
            self._pipeline.pause(0.002)
            self.clock.advance(0.01)
            self._pipeline.recorder.step_end(5)

    def stuck_in_all_gather(self) -> None:
        self._then()
        self._pipeline.stopped.wait(20)


def test_a_stall_in_the_timing_pass_shows_the_stacks(pipeline: Pipeline) -> None:
    def run_on() -> None:
        assert pipeline.recorder.beat[3] == TIMING
        stalling.clock.advance(10.5)

    stalling = Stalling(pipeline, 60, run_on)
    with pytest.raises(StallError) as caught:
        pipeline.watch(steps=1000)
    text = str(caught.value)
    assert "Pipeline stalled in the timing pass" in text
    assert "no counting mark for 10 s, 10 s are allowed" in text
    assert "thread 'thread-of-d'" in text
    assert "worker 'd', role drafter" in text
    assert "stuck_in_all_gather" in text


@pytest.mark.parametrize(("marks", "allowed_s"), [(0, 1800), (5, 120)])
def test_a_warm_up_may_be_silent_for_longer(pipeline: Pipeline, marks: int, allowed_s: int) -> None:
    seen: list[float] = []

    def run_on() -> None:
        while pipeline.recorder.beat[1] != allowed_s * 10**9:
            pipeline.pause()
        stalling.clock.advance(allowed_s - 1)
        pipeline.pause(10 * POLL_S)
        seen.append(stalling.clock.monotonic_ns())
        stalling.clock.advance(2)

    stalling = Stalling(pipeline, marks, run_on)
    with pytest.raises(StallError, match=f"in the warm-up.*{allowed_s} s are allowed"):
        pipeline.watch(warmup_steps=50)
    assert seen, "the silence that is allowed raised nothing"


def test_one_worker_that_never_comes_to_its_last_mark(pipeline: Pipeline) -> None:
    clock = FakeClock()
    pipeline.clock, pipeline.recorder = clock, Recorder(clock)
    first = threading.Event()

    def lazy() -> None:
        if not first.is_set():
            pipeline.recorder.step_end(5)
            first.set()
        pipeline.pause(0.01)

    def busy() -> None:
        pipeline.pause()
        clock.advance(0.1)
        pipeline.recorder.step_end(5)

    pipeline.start("lazy", lazy, counts=True)
    first.wait(10)
    pipeline.start("busy", busy, counts=True)
    with pytest.raises(StallError, match="no counting mark of worker 'lazy'"):
        pipeline.watch(steps=20, warmup_steps=2)


def test_a_late_worker_of_the_role_has_its_window_too(pipeline: Pipeline) -> None:
    pipeline.start("d0", pipeline.trainer(), role="drafter")
    started = threading.Event()

    def starter() -> object:
        if pipeline.recorder.beat[3] == TIMING and not started.is_set():
            started.set()
            pipeline.start("d1", pipeline.trainer(), role="drafter")
        pipeline.pause()
        return None

    pipeline.start("starter", starter)
    found = pipeline.watch(steps=300)
    assert {one.worker for one in found.marks if one.window} == {"d0", "d1"}


def test_no_steps_are_a_usage_error(pipeline: Pipeline) -> None:
    with pytest.raises(UsageError, match="steps=0"):
        pipeline.watch(steps=0)
