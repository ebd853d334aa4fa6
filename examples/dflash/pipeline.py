"""The pipeline: targets → post-process → bounded queue → drafters, each a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from .config import SIZES, Size
from .disturbances import Garbage, StepLog, spin
from .hidden_queue import HiddenStateQueue, QueueClosedError
from .knobs import Knobs
from .recording import Recorder, Unrecorded
from .stages import DrafterStage, TargetStage, Workshop, build_stages

JOIN_TIMEOUT_S = 15.0
HAND_OFF_DEPTH = 2


@dataclass(frozen=True)
class Progress:
    """What the drafters did so far: steps, tokens by kind, ``(step, loss)`` where it was read."""

    steps: int
    tokens: dict[str, int]
    losses: list[tuple[int, float]]


class DFlashPipeline:
    """Runs from ``__enter__`` to ``__exit__``.

    Stages are built, compiled and warmed one after another before any worker starts, since dynamo
    is not thread-safe. On exit workers are stopped and joined; what a worker raised is raised,
    unless the block itself raised.
    """

    def __init__(
        self,
        size: Size = SIZES["simulated"],
        knobs: Knobs | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.size, self.knobs = size, knobs or Knobs()
        self.recorder = recorder or Unrecorded()
        self.queue: HiddenStateQueue[Any] = HiddenStateQueue(self.knobs.depth, self.knobs.min_ready)
        self.garbage: Garbage | None = None
        self._stopped = threading.Event()
        self._moved = threading.Condition()
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._hand_offs: list[HiddenStateQueue[Any]] = []
        self._progress = Progress(0, {}, [])

    def __enter__(self) -> DFlashPipeline:  # noqa: PYI034 - Self is newer than 3.10
        """Build, warm and start everything."""
        self.log = StepLog(self.knobs.log_every)
        self.garbage = Garbage() if self.knobs.gc == "heavy" else None
        try:
            workshop = Workshop(self.size, self.knobs, self.recorder, self.log)
            targets, drafters = build_stages(workshop)
            _warm(targets, drafters)
            self._start(targets, drafters)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop and join the workers. Raises what a worker raised, or RuntimeError for one that
        does not end."""
        stuck = self._stop()
        if error is not None:
            return
        if self._errors:
            raise self._errors[0]
        if stuck:
            raise RuntimeError(
                f"workers did not end within {JOIN_TIMEOUT_S:g} s of being stopped: "
                f"{', '.join(stuck)}; they are left behind as daemon threads"
            )

    @property
    def progress(self) -> Progress:
        """What was done so far."""
        with self._moved:
            return self._progress

    def wait_for(self, steps: int, timeout_s: float = 600.0) -> Progress:
        """Wait until the drafters have taken ``steps`` steps together, and return the progress.

        Returns at once when a worker failed (leaving the pipeline raises its error). Raises
        ``TimeoutError``.
        """

        def is_over() -> bool:
            return self._progress.steps >= steps or self._stopped.is_set()

        with self._moved:
            if not self._moved.wait_for(is_over, timeout_s):
                raise TimeoutError(
                    f"only {self._progress.steps} of {steps} steps within {timeout_s:g} s"
                )
            return self._progress

    # -- workers ----------------------------------------------------------------------------------

    def _start(self, targets: list[TargetStage], drafters: list[DrafterStage]) -> None:
        shared = self.recorder.queue(
            self.queue, name="hidden-states", low_water=self.knobs.min_ready
        )
        for i, target in enumerate(targets):
            if self.knobs.post == "async":
                hand_off: HiddenStateQueue[Any] = HiddenStateQueue(HAND_OFF_DEPTH)
                self._hand_offs.append(hand_off)
                inbox = self.recorder.queue(hand_off, name=f"computed-{i}")
                self._add(f"target-{i}", partial(self._compute, i, target, inbox.put))
                self._add(f"post-{i}", partial(self._post, i, target, inbox, shared))
            else:

                def packed(computed: Any, target: TargetStage = target) -> None:
                    with self.recorder.stage("post"):
                        item = target.post(computed)
                    shared.put(item)

                self._add(f"target-{i}", partial(self._compute, i, target, packed))
        for i, drafter in enumerate(drafters):
            self._add(f"drafter-{i}", partial(self._train, i, drafter, shared))
        for i in range(self.knobs.spin):
            self._add(f"spin-{i}", partial(spin, self._stopped.is_set))
        for thread in self._threads:
            thread.start()

    def _add(self, name: str, work: Callable[[], object]) -> None:
        thread = threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)
        self._threads.append(thread)

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever joins this thread
            self._errors.append(error)
            self._request_stop()

    def _compute(self, i: int, target: TargetStage, hand_on: Callable[[Any], None]) -> None:
        with self.recorder.worker(f"target-{i}", role="target", device=target.device):
            index = i
            while not self._stopped.is_set():
                computed = target.compute(index)
                try:
                    hand_on(computed)
                except QueueClosedError:
                    return
                self.recorder.step_end()
                index += self.size.targets

    def _post(self, i: int, target: TargetStage, inbox: Any, shared: Any) -> None:
        with self.recorder.worker(f"post-{i}", role="post", device=target.device):
            while not self._stopped.is_set():
                try:
                    shared.put(target.post(inbox.get()))
                except QueueClosedError:
                    return
                self.recorder.step_end()

    def _train(self, i: int, drafter: DrafterStage, shared: Any) -> None:
        name = f"drafter-{i}"
        with self.recorder.worker(name, role="drafter", device=drafter.device, counts=True):
            step = 0
            while not self._stopped.is_set():
                try:
                    item = shared.get()
                except QueueClosedError:
                    return
                step += 1
                trained = drafter.train(item, step)
                if self.garbage is not None:
                    self.garbage.step()
                self.recorder.step_end(tokens=trained.tokens)
                self._advance(
                    trained.tokens, None if trained.loss is None else (step, trained.loss)
                )

    def _advance(self, tokens: Any, loss: tuple[int, float] | None) -> None:
        with self._moved:
            was = self._progress
            total = {kind: was.tokens.get(kind, 0) + count for kind, count in tokens.items()}
            losses = was.losses if loss is None else [*was.losses, loss]
            self._progress = Progress(was.steps + 1, total, losses)
            self._moved.notify_all()

    # -- teardown ---------------------------------------------------------------------------------

    def _request_stop(self) -> None:
        self._stopped.set()
        for each in (self.queue, *self._hand_offs):
            each.close()
        with self._moved:
            self._moved.notify_all()

    def _stop(self) -> list[str]:
        """Stop everything; return the names of workers that did not end in time."""
        self._request_stop()
        until = time.monotonic() + JOIN_TIMEOUT_S
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        stuck = [thread.name for thread in self._threads if thread.is_alive()]
        for each in (self.queue, *self._hand_offs):
            _drop_items(each)
        self.garbage = None
        if not stuck:
            self.log.close()
        return stuck


def _warm(targets: list[TargetStage], drafters: list[DrafterStage]) -> None:
    for target in targets:
        target.warm()
    for drafter in drafters:
        drafter.warm(targets[0].post(targets[0].compute(0)))


def _drop_items(queue: HiddenStateQueue[Any]) -> None:
    """Let go of hidden states that nobody will train on."""
    with queue.mutex:
        queue.queue.clear()
