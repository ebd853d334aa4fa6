"""The step loop on a fake clock: windows, synchronization, steady state, bad steps."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tokbudget.errors import StepError, UsageError
from pytest_tokbudget.measuring.beat import DONE, FAILED, TIMING, WARM_UP
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.loop import measure_steps
from pytest_tokbudget.measuring.measurement import Measured, Measurement
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeClock, FakeDevices

DATA = Path(__file__).parents[1] / "data" / "h200_steps" / "step_ms.json"


class Bench:
    """A fake machine whose steps take what a test says."""

    def __init__(self, times_ms: Callable[[int], float] = lambda _: 10.0) -> None:
        self.clock = FakeClock(start_ns=0)
        self.devices = FakeDevices(("cuda:0",), self.clock, synchronize_s=0.5)
        self.recorder = Recorder(self.clock)
        self.times_ms = times_ms
        self.count = 0
        self.synchronized_at: list[int] = []

    def step(self) -> object:
        self.clock.advance(self.times_ms(self.count) / 1e3)
        self.count += 1
        self.synchronized_at += [self.count] * (
            len(self.devices.synchronized) - len(self.synchronized_at)
        )
        return 100

    def measure(self, step: Callable[[], object] | None = None, **budget: object) -> Measurement:
        wanted = Budget(**{"steps": 50, **budget})  # type: ignore[arg-type]
        return measure_steps(step or self.step, self.recorder, wanted, self.devices, self.clock)


def test_exactly_the_steps_asked_for_are_timed_between_two_synchronizations() -> None:
    bench = Bench()
    found = bench.measure(warmup_steps=7)
    timing = found.timing
    assert bench.count == 57
    assert bench.devices.synchronized == [(None, "MainThread")] * 2
    assert bench.synchronized_at == [8], "one before the pass, none within it"
    assert timing.steps == 50
    assert timing.tokens == {"real": 5000}
    # 50 steps of 10 ms and the synchronization at the end.
    assert timing.end_ns - timing.start_ns == 1_000_000_000
    assert timing.tok_s == pytest.approx(5000.0)
    assert found.warmup.steps == 7
    assert found.warmup.seconds == pytest.approx(0.07 + 0.5)
    assert found.warmup.steady
    assert found.devices == ["cuda:0"]
    assert found.marks[0].device == "cuda:0"
    assert found.marks[0].window == (6, 56)
    assert list(bench.recorder.beat) == [bench.clock.monotonic_ns(), 0, 57, DONE]


def test_no_warm_up_at_all_may_be_asked_for() -> None:
    found = Bench().measure(warmup_steps=0)
    assert found.marks[0].window == (-1, 49)
    assert found.timing.tokens == {"real": 5000}


def test_steady_state_is_found() -> None:
    bench = Bench(lambda i: 100.0 if i < 30 else 10.0)
    found = bench.measure()
    assert found.warmup.steady
    assert 30 + 50 <= found.warmup.steps < 150, "a tail of 50 steps, or a second, must be steady"
    assert Measured(found).step_ms.max == pytest.approx(10.0)


def test_a_pass_that_was_not_steady_is_followed_by_another() -> None:
    bench = Bench(lambda i: 10.0 if i < 90 else 12.0)
    bench.devices = FakeDevices(("cuda:0",))
    found = bench.measure()
    assert found.warmup.steady
    assert found.warmup.steps > 90
    assert Measured(found).step_ms.p50 == pytest.approx(12.0)
    assert len(found.passes) == 1


class QueueingDevice(FakeDevices):
    """A device that takes 18 ms a step, in which the host waits for room once 9 are queued."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(("cuda:0",))
        self.clock = clock
        self.free_ns = 0

    def queue_step(self) -> None:
        now_ns = self.clock.monotonic_ns()
        self.free_ns = max(now_ns, self.free_ns) + 18_000_000
        self.clock.advance(max(2_000_000, self.free_ns - 9 * 18_000_000 - now_ns) / 1e9)

    def synchronize(self, device: str | None = None) -> None:
        super().synchronize(device)
        self.clock.advance(max(0, self.free_ns - self.clock.monotonic_ns()) / 1e9)


def test_steps_that_are_only_queued_while_the_devices_queue_fills_are_no_change_of_speed() -> None:
    bench = Bench()
    bench.devices = device = QueueingDevice(bench.clock)

    def step() -> object:
        device.queue_step()
        bench.count += 1
        return 100

    found = bench.measure(step)
    assert found.warmup.steady, found.warmup.reason
    assert bench.count == found.warmup.steps + 50, "one pass was enough"
    assert found.timing.tok_s == pytest.approx(100 / 0.018, rel=1e-6)


def test_what_never_becomes_steady_is_said_and_still_measured() -> None:
    bench = Bench(lambda i: 10.0 * 1.01**i)
    found = bench.measure()
    assert not found.warmup.steady
    assert found.warmup.reason.startswith("no steady state was found in")
    assert "step times changed by +" in found.warmup.reason
    assert found.timing.steps == 50
    assert found.warmup.seconds >= 60


def test_a_fixed_warm_up_is_not_extended_though_the_pass_is_judged() -> None:
    bench = Bench(lambda i: 10.0 if i < 30 else 12.0)
    bench.devices = FakeDevices(("cuda:0",))
    found = bench.measure(warmup_steps=5)
    assert bench.count == 55
    assert not found.warmup.steady
    assert "in the timing pass step times changed by +" in found.warmup.reason


def test_memory_reserved_in_the_pass_asks_for_another() -> None:
    bench = Bench()

    def step() -> object:
        bench.devices.reserved = 2**30 if bench.count < 90 else 2**31
        return bench.step()

    found = bench.measure(step)
    assert found.warmup.steady
    assert found.warmup.steps > 90
    bench = Bench()
    bench.devices.reserved = 2**30

    def growing() -> object:
        bench.devices.reserved += 2**26
        return bench.step()

    found = bench.measure(growing, warmup_steps=5)
    assert "MiB of device memory were newly reserved in the timing pass" in found.warmup.reason


@pytest.mark.parametrize("name", ["gpu_bound-04", "host_bound-08", "pipeline-04"])
def test_recorded_sessions_are_measured_steady(name: str) -> None:
    times: list[float] = json.loads(DATA.read_text())[name]
    bench = Bench(lambda i: times[i] if i < len(times) else times[30 + i % (len(times) - 30)])
    assert bench.measure(steps=100).warmup.steady


def test_tokens_by_kind() -> None:
    bench = Bench()
    found = bench.measure(lambda: {"real": bench.step(), "slots": 128}, warmup_steps=1)
    assert found.timing.tokens == {"real": 5000, "slots": 6400}
    assert found.timing.tok_s == pytest.approx(5000.0)


def test_with_constant_tokens_the_return_value_is_not_looked_at() -> None:
    bench = Bench()
    found = bench.measure(
        lambda: bench.step() and None, warmup_steps=1, constant_tokens=64, token_kind="slots"
    )
    assert found.timing.tokens == {"slots": 3200}
    assert bench.synchronized_at == [2], "one before the pass, none within it"
    assert len(bench.devices.synchronized) == 2


@pytest.mark.parametrize("bad", [None, 0, -5, 2.5, True, "9", {"slots": 3}, {"real": 0}])
@pytest.mark.parametrize(("at", "where"), [(1, "step 2 (warm-up)"), (7, "step 8 (timing pass)")])
def test_a_bad_step_is_named_with_its_value(bad: object, at: int, where: str) -> None:
    bench = Bench()
    with pytest.raises(StepError) as caught:
        bench.measure(lambda: bad if bench.step() and bench.count == at + 1 else 100,
                      warmup_steps=5)  # fmt: skip
    assert str(caught.value).startswith(f"{where} returned")
    shown = bad if not isinstance(bad, dict) else next(iter(bad.values()))
    assert str(shown) in str(caught.value)
    assert bench.recorder.beat[1] == 0
    assert bench.recorder.beat[3] == FAILED + (WARM_UP if at == 1 else TIMING)


@pytest.mark.parametrize("constant", [None, 64])
def test_a_coroutine_is_refused_and_closed(constant: int | None) -> None:
    async def step() -> int:
        return 3

    made = []

    def call() -> object:
        made.append(step())
        return made[-1]

    with pytest.raises(StepError, match="returned a coroutine"):
        Bench().measure(call, constant_tokens=constant)
    with pytest.raises(RuntimeError, match="cannot reuse"):
        made[0].send(None)


@pytest.mark.parametrize("error", [ValueError("boom"), KeyboardInterrupt()])
def test_what_a_step_raises_goes_on_unchanged(error: BaseException) -> None:
    bench = Bench()

    def step() -> object:
        if bench.count == 60:
            raise error
        return bench.step()

    with pytest.raises(type(error)) as caught:
        bench.measure(step)
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert list(bench.recorder.beat)[1:] == [0, 60, FAILED + TIMING]
    assert len(bench.recorder.mark_series("real")[0].times_ns) == 60


@pytest.mark.parametrize("budget", [{"steps": 0}, {"steps": -3}, {"warmup_steps": -1}])
def test_no_steps_are_a_usage_error(budget: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=r"steps=|warmup="):
        Bench().measure(None, **budget)


def test_a_step_that_marks_for_itself_too_would_count_twice() -> None:
    bench = Bench()

    def step() -> object:
        bench.recorder.step_end(100)
        return bench.step()

    with pytest.raises(StepError, match="would count twice"):
        bench.measure(step, warmup_steps=1)


def test_phases_and_allowed_silence_are_told_to_the_watching_process() -> None:
    bench = Bench(lambda _: 2000.0)
    seen: list[tuple[int, int]] = []

    def step() -> object:
        seen.append((bench.recorder.beat[3], bench.recorder.beat[1]))
        return bench.step()

    bench.measure(step, warmup_steps=2, steps=2)
    assert seen == [
        (WARM_UP, 1800 * 10**9),
        (WARM_UP, 120 * 10**9),
        (TIMING, 40 * 10**9),
        (TIMING, 40 * 10**9),
    ]


def test_other_workers_are_observed_and_not_counted() -> None:
    bench = Bench()

    def loader() -> None:
        with bench.recorder.worker("loader", role="loader"):
            bench.recorder.step_end(10**9)

    thread = threading.Thread(target=loader)
    thread.start()
    thread.join(10)
    found = bench.measure(warmup_steps=1)
    assert found.timing.tokens == {"real": 5000}
    assert {series.worker for series in found.marks} == {"loader", "step"}


@pytest.fixture
def torch_step() -> Callable[[], int]:
    torch = pytest.importorskip("torch")
    a = torch.randn(64, 64)

    def step() -> int:
        (a @ a).sum()
        return 64

    return step


def test_on_the_real_clock(torch_step: Callable[[], int]) -> None:
    clock = SystemClock()
    budget = Budget(steps=30, warmup_steps=3)
    begun = time.monotonic_ns()
    found = measure_steps(torch_step, Recorder(clock), budget, FakeDevices(), clock)
    assert begun < found.timing.start_ns < found.timing.end_ns < time.monotonic_ns()
    assert found.devices == ["cpu"]
    assert found.timing.tokens == {"real": 30 * 64}
