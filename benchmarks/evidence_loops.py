"""Training loops in the calling thread, fed by a loader thread through a queue."""

from __future__ import annotations

import queue
import threading

import torch
from torch import Tensor

from benchmarks.evidence_clock import StepClock
from benchmarks.evidence_faults import Injector
from benchmarks.evidence_held import Holdable
from benchmarks.evidence_model import LanguageModel, Shape
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder

SHAPES = {
    "gpu_bound": Shape(layers=8, width=1024, batch=12, length=1024),
    "launch_bound": Shape(layers=8, width=512, batch=4, length=256),
}
TINY = Shape(layers=1, width=64, batch=2, length=16, vocabulary=64)
CAPACITY = 4


class Loop(Holdable):
    """One optimizer step after the other, in the thread that calls ``run``."""

    cut_at_marks = False
    """Whether a window ends at marks, the devices running on, or with them synchronized."""

    def __init__(self, shape: Shape, injector: Injector) -> None:
        self.recorder = Recorder(SystemClock())
        self.injector = injector
        self.clock = StepClock(injector.device)
        self.settle_steps = CAPACITY
        """Steps after a change of the fault that belong to neither side."""
        self._shape = shape
        self._model = LanguageModel(shape).to(injector.device)
        self._optimizer = torch.optim.AdamW(self._model.parameters())
        self._batches = self.recorder.queue(queue.Queue(CAPACITY), "batches")
        self._ended = threading.Event()
        self._loader = threading.Thread(target=self._load, name="loader-0", daemon=True)
        self._worker = self.recorder.worker("train", "trainer", str(injector.device), counts=True)
        self._worker.__enter__()
        self._loader.start()

    def run(self, steps: int) -> None:
        """Run ``steps`` steps."""
        for _ in range(steps):
            self._step()

    def close(self) -> None:
        """End the loader."""
        self._ended.set()
        while self._loader.is_alive():
            try:
                self._batches.get(timeout=0.1)
            except queue.Empty:
                continue
        self._worker.__exit__(None, None, None)

    def _load(self) -> None:
        generator = torch.Generator().manual_seed(5)
        size = (self._shape.batch, self._shape.length)
        pin = self.injector.cuda
        batch = torch.randint(self._shape.vocabulary, size, generator=generator, pin_memory=pin)
        with self.recorder.worker("loader-0", "loader"):
            while not self._ended.is_set():
                self.injector.loader()
                self._batches.put(batch)

    def _step(self) -> None:
        injector = self.injector
        tokens: Tensor = self._batches.get()
        injector.python()
        batch = tokens.to(injector.device, non_blocking=True)
        injector.stream()
        with torch.autocast(injector.device.type, torch.bfloat16):
            loss = self._model(batch)
        injector.item(loss)
        loss.backward()
        injector.copy()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        injector.cache()
        injector.sleep()
        self.clock.tick()
        self.recorder.step_end(tokens.numel())
