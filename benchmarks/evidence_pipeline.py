"""A threaded two-stage pipeline: a frozen target's forward pass feeds a trained drafter."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.evidence_clock import StepClock
from benchmarks.evidence_faults import Injector
from benchmarks.evidence_held import Holdable
from benchmarks.evidence_model import Block, LanguageModel, Shape
from pytest_tokbudget.errors import StallError
from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder

_CUDA: Any = torch.cuda

TARGET = Shape(layers=12, width=1024, batch=8, length=512)
CAPACITY = 4
STALL_SECONDS = 60.0


class Drafter(nn.Module):
    """Learns to predict tokens from the target's hidden states."""

    def __init__(self, shape: Shape) -> None:
        width, layers = shape.width, max(shape.layers // 3, 1)
        super().__init__()
        self.enter = nn.Linear(width, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, shape.vocabulary)

    def forward(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Hidden states (batch, length, width) and tokens (batch, length) → the loss."""
        hidden = self.enter(hidden)
        for block in self.blocks:
            hidden = block(hidden)
        logits = self.head(hidden)[:, :-1]
        return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


class Pipeline(Holdable):
    """Two threads and a queue between them; ``run`` only waits until steps were made."""

    cut_at_marks = True

    def __init__(self, shape: Shape, injector: Injector) -> None:
        self.recorder = Recorder(SystemClock())
        self.injector = injector
        self.clock = StepClock(injector.device)
        self.settle_steps = CAPACITY + 2
        self._shape = shape
        self._target = LanguageModel(shape).to(injector.device).requires_grad_(False)
        self._drafter = Drafter(shape).to(injector.device)
        self._optimizer = torch.optim.AdamW(self._drafter.parameters())
        self._items = self.recorder.queue(queue.Queue(CAPACITY), "hidden")
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._guarded, args=(body,), name=name, daemon=True)
            for body, name in ((self._produce, "target-0"), (self._train, "drafter-0"))
        ]
        if injector.cuda:
            torch.cuda.synchronize()  # the models were made on a stream that the threads do not use
        for thread in self._threads:
            thread.start()

    def run(self, steps: int) -> None:
        """Wait until the drafter has made ``steps`` more steps."""
        until = len(self.clock) + steps
        patience = time.monotonic() + STALL_SECONDS + 0.2 * steps
        while len(self.clock) < until:
            if self._failure is not None:
                raise self._failure
            if time.monotonic() > patience:
                raise StallError(f"the pipeline made no {steps} steps in {STALL_SECONDS} s")
            time.sleep(0.002)

    def close(self) -> None:
        """End both threads."""
        self._ended.set()
        while any(thread.is_alive() for thread in self._threads):
            try:
                self._items.get(timeout=0.05)
            except queue.Empty:
                continue

    def _guarded(self, body: Any) -> None:
        try:
            body()
        except BaseException as error:
            self._failure = error
            self._ended.set()
            raise

    def _own_stream(self) -> Any:
        if not self.injector.cuda:
            return nullcontext()
        return torch.cuda.stream(_CUDA.Stream(self.injector.device))

    def _produce(self) -> None:
        injector, device = self.injector, self.injector.device
        generator = torch.Generator().manual_seed(5)
        size = (self._shape.batch, self._shape.length)
        host = torch.randint(
            self._shape.vocabulary, size, generator=generator, pin_memory=injector.cuda
        )
        with self.recorder.worker("target-0", "target", str(device)), self._own_stream():
            while not self._ended.is_set():
                injector.python()
                tokens = host.to(device, non_blocking=True)
                with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
                    hidden = self._target.hidden(tokens)
                injector.stream()
                injector.copy()
                injector.loader()
                done = _CUDA.Event() if injector.cuda else None
                if done is not None:
                    done.record()
                self._items.put((hidden, tokens, done))

    def _train(self) -> None:
        device = self.injector.device
        worker = self.recorder.worker("drafter-0", "drafter", str(device), counts=True)
        with worker, self._own_stream():
            while not self._ended.is_set():
                try:
                    item = self._items.get(timeout=1.0)
                except queue.Empty:
                    continue
                self._train_on(*item)

    def _train_on(self, hidden: Tensor, tokens: Tensor, done: Any) -> None:
        injector = self.injector
        if done is not None:
            stream = torch.cuda.current_stream()
            stream.wait_event(done)
            hidden.record_stream(stream)
            tokens.record_stream(stream)
        with torch.autocast(injector.device.type, torch.bfloat16):
            loss = self._drafter(hidden, tokens)
        injector.item(loss)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        injector.cache()
        injector.sleep()
        self.clock.tick()
        self.recorder.step_end(tokens.numel())
