"""The small parts: the beat's limits, devices without torch, fakes, what the author gets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_tokbudget.errors import MeasureError
from pytest_tokbudget.measuring.beat import (
    DONE,
    EVIDENCE,
    TIMING,
    WARM_UP,
    allowed_silence_ns,
    enter,
)
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.devices import TorchDevices
from pytest_tokbudget.measuring.loop import measure_steps
from pytest_tokbudget.measuring.measurement import Measured
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.ports import Clock, Devices
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.testing import FakeClock, FakeDevices

S = 10**9


@pytest.mark.parametrize(
    ("phase", "median_ns", "allowed_s"),
    [
        (WARM_UP, None, 1800),
        (WARM_UP, S, 120),
        (WARM_UP, 7 * S, 140),
        (TIMING, S // 10, 10),
        (TIMING, S, 20),
        (EVIDENCE, S, 120),
        (DONE, None, 0),
    ],
)
def test_allowed_silence(phase: int, median_ns: int | None, allowed_s: int) -> None:
    assert allowed_silence_ns(phase, median_ns) == allowed_s * S


def test_a_phase_never_shows_a_new_limit_beside_an_old_time() -> None:
    writes: list[tuple[int, int]] = []

    class Watched(list[int]):
        def __setitem__(self, slot: object, value: object) -> None:
            writes.append((slot, value))  # type: ignore[arg-type]

    enter(Watched([0, 0, 0, 0]), TIMING, 77, S)
    assert writes == [(1, 0), (0, 77), (3, TIMING), (1, 20 * S)]


def test_devices_never_load_torch() -> None:
    code = (
        "import sys\n"
        "from pytest_tokbudget.measuring.devices import TorchDevices, recompilations\n"
        "d = TorchDevices()\n"
        "d.synchronize(); d.synchronize('cuda:0'); d.synchronize('cpu')\n"
        "assert (d.used(), d.reserved_bytes(), recompilations()) == ([], 0, None)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class Cuda:
    """As much of torch.cuda as is used, with three devices, two of them with memory."""

    def __init__(self, initialized: bool) -> None:
        self.initialized = initialized
        self.calls: list[str] = []

    def is_initialized(self) -> bool:
        return self.initialized

    def device_count(self) -> int:
        return 3

    def memory_reserved(self, device: int) -> int:
        return [2**20, 0, 2**21][device]

    def synchronize(self, device: str) -> None:
        self.calls.append(device)


def torch_with(monkeypatch: pytest.MonkeyPatch, cuda: Cuda) -> None:
    class Torch:
        pass

    torch = Torch()
    torch.cuda = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)


def test_cuda_devices_in_use_are_those_with_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda(initialized=True)
    torch_with(monkeypatch, cuda)
    devices = TorchDevices()
    assert devices.used() == ["cuda:0", "cuda:2"]
    assert devices.reserved_bytes() == 3 * 2**20
    devices.synchronize()
    devices.synchronize("cuda:1")
    devices.synchronize("cpu")
    devices.synchronize("sim0")
    assert cuda.calls == ["cuda:0", "cuda:2", "cuda:1"]


def test_cuda_is_left_alone_until_the_workload_has_initialized_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = Cuda(initialized=False)
    torch_with(monkeypatch, cuda)
    devices = TorchDevices()
    devices.synchronize()
    devices.synchronize("cuda:0")
    assert (devices.used(), devices.reserved_bytes(), cuda.calls) == ([], 0, [])


def test_the_fakes_and_the_real_ones_are_what_the_ports_ask_for() -> None:
    clocks: list[Clock] = [FakeClock(), SystemClock()]
    devices: list[Devices] = [FakeDevices(), TorchDevices()]
    assert len(clocks) == len(devices) == 2
    before = SystemClock.monotonic_ns()
    SystemClock().sleep(0)
    assert SystemClock.monotonic_ns() >= before
    assert SystemClock.unix_ns() > 10**18


def test_the_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock(start_ns=5, unix_offset_ns=100)
    assert (clock.monotonic_ns(), clock.unix_ns()) == (5, 105)
    clock.sleep(1)
    clock.advance(0.5)
    assert clock.monotonic_ns() == 1_500_000_005
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_the_author_gets_this_sessions_figures() -> None:
    clock = FakeClock()

    def step() -> int:
        clock.advance(0.01)
        return 128

    budget = Budget(steps=20, warmup_steps=3)
    found = Measured(measure_steps(step, Recorder(clock), budget, FakeDevices(), clock))
    assert found.tok_s == pytest.approx(12_800)
    assert (found.steps, found.warmup_steps, found.tokens) == (20, 3, {"real": 2560})
    assert (found.step_ms.p50, found.step_ms.p95, found.step_ms.max) == (10.0, 10.0, 10.0)
    assert repr(found) == "<measured 12,800 tok/s over 20 steps>"
    for name in ("ledger", "hot_frames"):
        with pytest.raises(MeasureError, match=f"{name} was not measured: no evidence pass"):
            getattr(found, name)
