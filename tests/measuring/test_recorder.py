"""The recorder: marks, workers, roles, spans, gauges; with real threads where threads matter."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest

from pytest_tokbudget.errors import StepError, UsageError
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.testing import FakeClock


def in_thread(work: Callable[[], object], name: str = "helper") -> None:
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_marks_carry_time_tokens_worker_role_and_device() -> None:
    clock = FakeClock(start_ns=0)
    recorder = Recorder(clock)
    with recorder.worker("drafter-0", role="drafter", device="cuda:1", counts=True):
        for tokens in (10, {"real": 20, "slots": 30}):
            clock.advance(0.5)
            recorder.step_end(tokens)
    (series,) = recorder.mark_series("real")
    assert (series.worker, series.role, series.device) == ("drafter-0", "drafter", "cuda:1")
    assert series.counts
    assert series.native_id == threading.get_native_id()
    assert series.times_ns == [500_000_000, 1_000_000_000]
    assert series.tokens == {"real": [10, 20], "slots": [0, 30]}


def test_only_counting_marks_beat() -> None:
    clock = FakeClock(start_ns=0)
    beat = memoryview(bytearray(32)).cast("q")
    recorder = Recorder(clock, beat=beat)
    with recorder.worker("target", role="target"):
        clock.advance(1)
        recorder.step_end()
    assert beat.tolist() == [0, 0, 0, 0]
    with recorder.worker("drafter", counts=True):
        clock.advance(1)
        recorder.step_end(5)
    assert beat.tolist() == [2_000_000_000, 0, 1, 0]


def test_an_undeclared_worker_beats_from_its_first_tokens_on() -> None:
    clock = FakeClock(start_ns=7)
    recorder = Recorder(clock)
    recorder.step_end(5)
    recorder.step_end(5)
    assert list(recorder.beat)[:3] == [7, 0, 2]


@pytest.mark.parametrize("bad", [True, 1.5, 0, -1, "3", {"real": 0}, [1]])
def test_a_mark_with_no_token_count_is_refused_and_leaves_nothing(bad: object) -> None:
    recorder = Recorder(FakeClock())
    with recorder.worker("w", counts=True):
        recorder.step_end(5)
        with pytest.raises(StepError, match="worker 'w' was given"):
            recorder.step_end(bad)
    assert len(recorder.mark_series("real")[0].times_ns) == 1


def test_a_counting_worker_must_give_tokens_unless_they_are_constant() -> None:
    recorder = Recorder(FakeClock())
    with recorder.worker("w", counts=True):
        recorder.step_end()
        recorder.bare_marks_count = False
        with pytest.raises(StepError, match="None"):
            recorder.step_end()
    assert recorder.mark_series("real", 64)[0].tokens == {"real": [64]}


def test_a_mark_may_name_its_worker_role_and_device_itself() -> None:
    recorder = Recorder(FakeClock())
    recorder.step_end(1, role="drafter", device="cuda:0")
    recorder.step_end(1, role="drafter", device="cuda:0")
    recorder.step_end(role="target", worker="t-0")
    found = {one.worker: (one.role, one.device, len(one.times_ns)) for one in
             recorder.mark_series("real")}  # fmt: skip
    assert found == {
        "MainThread/drafter": ("drafter", "cuda:0", 2),
        "t-0": ("target", None, 1),
    }


def test_naming_the_own_role_in_a_mark_stays_in_the_own_series() -> None:
    recorder = Recorder(FakeClock())
    with recorder.worker("d", role="drafter"):
        recorder.step_end(1)
        recorder.step_end(1, role="drafter", device="cuda:3")
    (series,) = recorder.mark_series("real")
    assert (len(series.times_ns), series.device) == (2, "cuda:3")


def test_threads_of_one_name_have_their_own_series() -> None:
    recorder = Recorder(FakeClock())
    for _ in range(2):
        in_thread(lambda: recorder.step_end(1), name="pool")
    assert len(recorder.mark_series("real")) == 2


def test_many_threads_lose_no_mark() -> None:
    recorder = Recorder(SystemClock())
    start = threading.Barrier(4)

    def work(i: int) -> None:
        with recorder.worker(f"w{i}", counts=True):
            start.wait(10)
            for step in range(2000):
                recorder.step_end(step + 1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    found = recorder.mark_series("real")
    assert [sum(one.tokens["real"]) for one in found] == [2000 * 2001 // 2] * 4
    assert all(one.times_ns == sorted(one.times_ns) for one in found)
    assert recorder.beat[2] == pytest.approx(8000, abs=4)


def test_a_name_is_for_one_thread_at_a_time() -> None:
    recorder = Recorder(FakeClock())
    with recorder.worker("w"), pytest.raises(UsageError, match="'w' is at work"):
        recorder.worker("w").__enter__()
    with recorder.worker("w"):
        recorder.step_end()
    assert len(recorder.mark_series("real")) == 1


@pytest.mark.parametrize("error", [ValueError("boom"), KeyboardInterrupt()])
def test_an_exception_leaves_the_worker_and_the_recorder_whole(error: BaseException) -> None:
    recorder = Recorder(FakeClock())

    def work() -> None:
        with recorder.worker("w", counts=True):
            recorder.step_end(3)
            with recorder.wait("lock"), recorder.stage("inner"):
                raise error

    with pytest.raises(type(error)):
        work()
    (stream,) = recorder.streams()
    assert stream.error is error
    assert not stream.alive
    assert stream.quiet == 0
    assert [(one.kind, one.name) for one in recorder.span_series()] == [
        ("stage", "inner"),
        ("wait", "lock"),
    ]
    recorder.step_end(4)
    assert [one.worker for one in recorder.mark_series("real")] == ["w", "MainThread"]


def test_workers_may_nest() -> None:
    recorder = Recorder(FakeClock())
    with recorder.worker("outer"), recorder.worker("inner"):
        recorder.step_end()
    with recorder.worker("outer"):
        recorder.step_end()
    assert sorted(one.worker for one in recorder.mark_series("real")) == ["inner", "outer"]


def test_spans_and_gauges() -> None:
    clock = FakeClock(start_ns=0)
    recorder = Recorder(clock)
    with recorder.worker("w"):
        for _ in range(2):
            with recorder.wait("copy"):
                clock.advance(0.001)
        recorder.gauge("memory", 3)
    (span,) = recorder.span_series()
    assert (span.worker, span.start_ns, span.end_ns) == ("w", [0, 10**6], [10**6, 2 * 10**6])
    (gauge,) = recorder.gauge_series()
    assert (gauge.name, gauge.times_ns, gauge.values) == ("memory", [2 * 10**6], [3.0])
    for bad in (True, "3", None):
        with pytest.raises(UsageError, match="memory"):
            recorder.gauge("memory", bad)  # type: ignore[arg-type]


def roles(recorder: Recorder) -> list[str]:
    return [stream.name for stream in recorder.counting_streams()]


def test_the_declared_role_counts() -> None:
    recorder = Recorder(FakeClock())
    with recorder.worker("t", role="target"):
        recorder.step_end(100)
    with recorder.worker("d", role="drafter", counts=True):
        recorder.step_end(5)
    assert roles(recorder) == ["d"]


def test_the_only_role_with_tokens_counts_with_all_its_workers() -> None:
    recorder = Recorder(FakeClock())
    assert roles(recorder) == []
    with recorder.worker("t", role="target"):
        recorder.step_end()
    assert roles(recorder) == []
    with recorder.worker("d0", role="drafter"):
        recorder.step_end(5)
    assert roles(recorder) == ["d0"]
    with recorder.worker("d1", role="drafter"):
        assert recorder.current().counts, "a later worker of the chosen role counts too"
    assert roles(recorder) == ["d0", "d1"]


def test_several_roles_with_tokens_must_be_told_apart() -> None:
    recorder = Recorder(FakeClock())
    for role in ("target", "drafter"):
        with recorder.worker(role, role=role):
            recorder.step_end(5)
    with pytest.raises(UsageError, match=r"'drafter', 'target'.*counts=True"):
        recorder.counting_streams()


def test_with_constant_tokens_bare_marks_choose_the_role() -> None:
    recorder = Recorder(FakeClock())
    with recorder.worker("t", role="trainer"):
        recorder.step_end()
    assert recorder.counting_streams(64) == recorder.streams()


def test_marks_add_nothing_for_the_collector_to_keep_scanning() -> None:
    recorder = Recorder(SystemClock())
    with recorder.worker("w", counts=True):
        recorder.step_end(1)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(5000):
            recorder.step_end(1)
        gc.collect()
        assert len(gc.get_objects()) - before < 100
