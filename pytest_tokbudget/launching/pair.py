"""Runs one pair of an A/B: two fresh workers that step in turn, a short block each."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..errors import LaunchError
from ..ports import Launcher
from ..records.launch import WorkerOutcome, WorkerSpec
from .blocks import BlockServer, Message
from .processes import all_stopped, signal_group, wait_until

STEPPING_NS = 16_000_000_000
"""How long both sides of a pair step together."""
MOST_ROUNDS = 4000
SHORTEST_BLOCK_NS = 20_000_000
"""Shorter steps are gathered into blocks of this length, or waking up is what is measured."""
BLOCK_STEPS = (2, 3)
STOP_S = 0.1
"""How long the threads of a held side may take to stop."""

MEMORY_ERRORS = ("OutOfMemoryError", "MemoryError", "CUDAOutOfMemoryError")


@dataclass(frozen=True)
class PairOutcome:
    """How the two sides ended.

    ``unheld`` says why they must be measured one after the other, ``""`` where they were paired;
    ``culprit`` is the side that ended too early, ``""`` if none did.
    """

    ref: WorkerOutcome
    head: WorkerOutcome
    unheld: str = ""
    culprit: str = ""


class _Stopped(Exception):  # noqa: N818 - a request, not an error
    """Ends a launcher from another thread."""


class _Side:
    """One worker, run by its launcher in a thread of its own."""

    def __init__(self, name: str, spec: WorkerSpec, launcher: Launcher) -> None:
        self.name = name
        self._server = BlockServer(Path(spec.result_path).parent)
        self._spec = msgspec.structs.replace(spec, blocks=self._server.path)
        self._launcher = launcher
        self._outcome: WorkerOutcome | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"tokbudget-{name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._launcher.run(self._spec)
        except _Stopped:
            self._outcome = WorkerOutcome(result=None, failure=f"{self._spec.nodeid}: stopped")
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._error = error

    def ask(self, message: Message | None, *kinds: str) -> Message:
        """Send ``message``, if any, and return the answer; raises _Ended for anything else."""
        try:
            if message is not None:
                self._signal(signal.SIGCONT)
                self._server.send(message)
            answer = self._server.receive(lambda: not self._thread.is_alive())
        except (OSError, msgspec.MsgspecError):
            answer = None
        if answer is None or answer.kind not in kinds:
            raise _Ended(self, answer)
        self._signal(signal.SIGSTOP)
        group = self._server.worker_group
        if group is not None:
            # A thread that waits for a core stops when it gets one.
            wait_until(lambda: all_stopped(group), STOP_S, poll_s=0.0005)
        return answer

    def _signal(self, number: int) -> None:
        """Stop or continue the worker with its threads and children, whatever they do.

        A loader that went on filling its queue while the steps are held would hide that it is slow.
        """
        group = self._server.worker_group
        if group is not None:
            signal_group(group, number)

    def end(self) -> None:
        """Tell the worker that its timing pass is over, and wait for its process."""
        self._signal(signal.SIGCONT)
        with contextlib.suppress(OSError):
            self._server.send(Message(kind="end"))
        self._thread.join()

    def hang_up(self) -> None:
        """Break the channel: the worker fails its measurement and ends."""
        self._signal(signal.SIGCONT)
        self._server.close()

    def outcome(self) -> WorkerOutcome:
        """Wait for the end; raises what the launcher raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        if self._outcome is None:
            raise LaunchError(f"the {self.name} side of the pair ended without an outcome")
        return self._outcome


class _Ended(Exception):  # noqa: N818 - not an error of ours
    """A side ended, or cannot be held, before the pair was complete."""

    def __init__(self, side: _Side, answer: Message | None) -> None:
        super().__init__(side.name)
        self.side = side
        self.reason = answer.reason if answer is not None and answer.kind == "cannot" else ""


LauncherOf = Callable[[Callable[[], None]], Launcher]
"""Builds a launcher that calls the given function a few times a second; what that raises ends the
worker."""


def run_pair(
    ref: WorkerSpec,
    head: WorkerSpec,
    launcher_of: LauncherOf,
    *,
    ref_first: bool,
    rng: random.Random,
    stepping_ns: int | None = None,
) -> PairOutcome:
    """Start both workers, let each warm up alone, step them in turn, end them one by one.

    ``ref_first`` is the order of launching, warming up and ending; the order of the two blocks of a
    round is drawn from ``rng``. Both sides make equally many steps. Raises what a launcher raises;
    an exception here (Ctrl-C) ends both workers.
    """
    stop = threading.Event()

    def look() -> None:
        if stop.is_set():
            raise _Stopped

    specs = {"ref": ref, "head": head}
    names = ("ref", "head") if ref_first else ("head", "ref")
    sides: list[_Side] = []
    ended: _Ended | None = None
    try:
        for name in names:
            sides.append(_Side(name, specs[name], launcher_of(look)))
        try:
            _step_in_turn(sides, rng, STEPPING_NS if stepping_ns is None else stepping_ns)
        except _Ended as early:
            ended = early
            for side in sides:
                side.hang_up()
        for side in sides:
            side.end()
        outcomes = {side.name: side.outcome() for side in sides}
    except BaseException:
        stop.set()
        raise
    finally:
        for side in sides:
            side.hang_up()
            with contextlib.suppress(BaseException):
                side.outcome()
    return PairOutcome(
        ref=outcomes["ref"],
        head=outcomes["head"],
        unheld=_unheld(ended, outcomes),
        culprit="" if ended is None else ended.side.name,
    )


def _step_in_turn(sides: list[_Side], rng: random.Random, stepping_ns: int) -> None:
    """Warm up one after the other, then alternate blocks; raises _Ended."""
    for side in sides:
        side.ask(None, "ready")
    step_ns = 0
    for side in sides:
        step_ns = max(step_ns, side.ask(Message(kind="go"), "steady").ns)
    stepped_ns = 0
    for _ in range(MOST_ROUNDS):
        steps = rng.choice(BLOCK_STEPS)
        if step_ns:
            steps = max(steps, -(-SHORTEST_BLOCK_NS // step_ns))
        done = [
            side.ask(Message(kind="block", steps=steps), "done").ns
            for side in rng.sample(sides, len(sides))
        ]
        stepped_ns += sum(done)
        # Known from here on also where no step was made to warm up.
        step_ns = step_ns or max(done) // steps
        if stepped_ns >= stepping_ns:
            return


def _unheld(ended: _Ended | None, outcomes: dict[str, WorkerOutcome]) -> str:
    """Why the pair must be measured one after the other instead, ``""`` if it need not."""
    if ended is None:
        return ""
    if ended.reason:
        return ended.reason
    outcome = outcomes[ended.side.name]
    raised = [] if outcome.result is None else outcome.result.exception_mro
    if any(name.rpartition(".")[2] in MEMORY_ERRORS for name in raised):
        return "both sides together do not fit into memory"
    if outcome.result is None and "out of memory" in outcome.failure:
        return "both sides together do not fit into memory"
    return ""
