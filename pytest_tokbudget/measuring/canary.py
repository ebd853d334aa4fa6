"""Canaries: fixed pieces of work that say how fast the machine was, whatever the workload did."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..ports import Clock, Devices
from ..records.run import CanarySeries

INTERLEAVED, BEFORE, AFTER = "interleaved", "before", "after"
HOST_LOOP, TINY_STEP, MATMUL, COPY = "host_loop", "tiny_step", "device_matmul", "device_copy"

LARGEST_COST = 0.02
"""Largest share of the timing pass that interleaved canaries may take."""

MOST_STOPS = 16
MOST_STOPS_ON_DEVICES = 5
"""Each stop synchronizes the devices; more than a handful and another program is measured."""

STEPS_BETWEEN_STOPS = 4
QUEUED_STEPS = 0.5
"""Synchronizing took longer than this many steps: work was queued up ahead of the devices."""

_AROUND = 5
_WARM_UP = 8
_LOOP = 4000

Canary = Callable[[], None]


class Canaries:
    """The canaries of one session, in the thread that measures.

    ``prepare`` chooses them by what the workload has loaded: the host loop always, the tiny step
    where torch is, matmul and copy on each CUDA device in use. None of them draws random numbers,
    keeps a gradient, or leaves a setting changed. ``clock`` is the recorder's.
    """

    def __init__(self, clock: Clock, devices: Devices, *, on_devices: bool = True) -> None:
        self._clock, self._devices, self._on_devices = clock, devices, on_devices
        self._chosen: dict[tuple[str, str | None], Canary] | None = None
        self._readings: dict[tuple[str, str | None, str], list[tuple[int, int]]] = {}
        self._cost_ns = 0
        self.unavailable = ""

    def prepare(self) -> None:
        """Choose and warm up the canaries, once; the first readings are of no use."""
        if self._chosen is not None:
            return
        self._chosen = {(HOST_LOOP, None): host_loop}
        used = self._devices.used()
        torch = sys.modules.get("torch")
        try:
            self._chosen |= _torch_canaries(torch, used, self._on_devices)
            for _ in range(_WARM_UP):
                for canary in self._chosen.values():
                    canary()
        except (RuntimeError, TypeError, AttributeError, AssertionError) as error:
            # A canary is only a witness: a device without room for one still measures.
            self._chosen = {(HOST_LOOP, None): host_loop}
            self.unavailable = f"only the host loop: {type(error).__name__}: {error}"
        costs = []
        for _ in range(3):
            start_ns = self._clock.monotonic_ns()
            for canary in self._interleaved().values():
                canary()
            costs.append(self._clock.monotonic_ns() - start_ns)
        self._cost_ns = sorted(costs)[1]

    def begin_pass(self) -> None:
        """Forget an earlier pass, and read all canaries before this one."""
        self.prepare()
        self._readings.clear()
        self._read(self._chosen or {}, BEFORE, _AROUND)

    def end_pass(self) -> None:
        """Read all canaries after the pass."""
        self._read(self._chosen or {}, AFTER, _AROUND)

    def stop(self) -> tuple[int, int]:
        """Read the interleaved canaries; return when that began and ended."""
        start_ns = self._clock.monotonic_ns()
        self._read(self._interleaved(), INTERLEAVED, 1)
        return start_ns, self._clock.monotonic_ns()

    def blocks(self, steps: int, step_ns: int, drain_ns: int) -> list[int]:
        """Return the steps of each block of the pass; between two blocks there is a stop.

        On devices the pass is cut only where the host is what the steps wait for. ``drain_ns`` is
        how long the devices took to come to rest before the pass: where more than half a step was
        queued, a stop would empty a queue that the program keeps full.
        """
        on_devices = bool(self._devices.used())
        if not self._cost_ns or (on_devices and drain_ns > QUEUED_STEPS * step_ns):
            return [steps]
        affordable = int(LARGEST_COST * steps * step_ns / self._cost_ns)
        most = MOST_STOPS_ON_DEVICES if on_devices else MOST_STOPS
        stops = max(0, min(most, affordable, steps // STEPS_BETWEEN_STOPS - 1))
        ends = np.linspace(0, steps, stops + 2).round().astype(int)
        return [int(count) for count in np.diff(ends)]

    def series(self) -> list[CanarySeries]:
        """Return the readings; none of a canary that the clock could not time."""
        return [
            CanarySeries(
                name=name,
                where=where,
                device=device,
                times_ns=[start for start, _ in readings],
                durations_ns=[duration for _, duration in readings],
            )
            for (name, device, where), readings in self._readings.items()
            if all(duration > 0 for _, duration in readings)
        ]

    def _interleaved(self) -> dict[tuple[str, str | None], Canary]:
        """Those of the host: matmul and copy cost milliseconds on a small device."""
        chosen = self._chosen or {}
        return {key: one for key, one in chosen.items() if key[0] in (HOST_LOOP, TINY_STEP)}

    def _read(self, chosen: dict[tuple[str, str | None], Canary], where: str, times: int) -> None:
        clock = self._clock
        for (name, device), canary in chosen.items():
            readings = self._readings.setdefault((name, device, where), [])
            for _ in range(times):
                start_ns = clock.monotonic_ns()
                canary()
                readings.append((start_ns, clock.monotonic_ns() - start_ns))


def host_loop() -> None:
    """Do a fixed amount of arithmetic in the interpreter, a fraction of a millisecond of it."""
    total = 0
    for number in range(_LOOP):
        total += number * number


def _torch_canaries(
    torch: Any, used: list[str], on_devices: bool
) -> dict[tuple[str, str | None], Canary]:
    if torch is None or not hasattr(torch, "autograd"):
        return {}
    if not used:
        return {(TINY_STEP, None): _tiny_step(torch, "cpu")}
    if not on_devices:
        return {}
    chosen: dict[tuple[str, str | None], Canary] = {
        (TINY_STEP, used[0]): _tiny_step(torch, used[0])
    }
    for device in used:
        chosen[MATMUL, device] = _matmul(torch, device)
        chosen[COPY, device] = _copy(torch, device)
    return chosen


def tiny_step(device: str) -> Canary:
    """Return the tiny step on ``device``, for a workload that uses torch."""
    return _tiny_step(sys.modules["torch"], device)


def _tiny_step(torch: Any, device: str) -> Canary:
    """Forward and backward of layers so small that launching them is all they cost."""
    with _plain(torch, device):
        weights = [
            torch.full((16, 16), 0.01, device=device, dtype=torch.float32, requires_grad=True)
            for _ in range(6)
        ]
        x = torch.full((4, 16), 1.0, device=device, dtype=torch.float32)

    def run() -> None:
        with _plain(torch, device):
            hidden = x
            for weight in weights:
                hidden = torch.tanh(hidden @ weight)
            torch.autograd.grad(hidden.sum(), weights)
        _wait_for(torch, device)

    return run


def _matmul(torch: Any, device: str) -> Canary:
    with _plain(torch, device):
        a = torch.full((2048, 2048), 0.01, device=device, dtype=torch.float16)
        out = torch.empty_like(a)

    def run() -> None:
        with _plain(torch, device), torch.no_grad():
            for _ in range(4):
                torch.mm(a, a, out=out)
        _wait_for(torch, device)

    return run


def _copy(torch: Any, device: str) -> Canary:
    with _plain(torch, device):
        source = torch.full((1 << 22,), 1.0, device=device, dtype=torch.float32)
        target = torch.empty_like(source)

    def run() -> None:
        with _plain(torch, device), torch.no_grad():
            for _ in range(4):
                target.copy_(source)
        _wait_for(torch, device)

    return run


@contextlib.contextmanager
def _plain(torch: Any, device: str) -> Iterator[None]:
    """Whatever modes the author's code left on, the canary runs without them."""
    kind = device.partition(":")[0]
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(device_type=kind, enabled=False),
    ):
        yield


def _wait_for(torch: Any, device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
