"""The evidence pass: after the timing pass, one more stretch of steps for each instrument."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from ..errors import StallError
from ..ports import Clock, Instrument
from ..records.budget import Budget
from ..records.run import Pass
from .beat import EVIDENCE, SECOND_NS, enter
from .recorder import Recorder

HOLD_S = 10.0
"""How long a worker may take to come to a mark or a queue call."""
HOLD_AFTER_ERROR_S = 0.5
"""Once the test has failed, or somebody wants it to end."""
NO_STEP = "no step ended in the window of this instrument, so there is nothing to look at"


class WorkloadEndedError(Exception):
    """The workload made its last step by itself; nobody outside ``measuring`` sees this."""


class Workload(Protocol):
    """What the evidence pass needs of a workload that has been timed."""

    def resting(self, hold_s: float) -> AbstractContextManager[str]:
        """Let no worker be in a step, and the devices be idle, inside the block.

        Workers have ``hold_s`` to come to a mark or a queue call.

        Enters with ``""``, or with the worker that could not be brought to stand.
        """
        ...

    def step_until(self, done: Callable[[], bool]) -> None:
        """Go on until ``done()``, which is asked after every few steps at the latest.

        Raises ``WorkloadEndedError``, ``StallError``, or what the workload raises.
        """
        ...

    def now_ns(self, at_rest: bool) -> int:
        """A moment that may end a window: idle devices where asked for and possible, else a
        mark."""
        ...


class EvidenceWindows(NamedTuple):
    """Windows by instrument in monotonic ns, and why instruments have none."""

    windows: dict[str, tuple[int, int]]
    unavailable: dict[str, str]


class EvidenceRunner:
    """Takes ``workload`` through one window for each instrument; leaves nothing held or running."""

    def __init__(
        self, workload: Workload, recorder: Recorder, budget: Budget, clock: Clock
    ) -> None:
        self._workload, self._recorder, self._clock = workload, recorder, clock
        self._constant = budget.constant_tokens

    def run(self, instruments: Sequence[Instrument], step_ns: int) -> EvidenceWindows:
        """Use the instruments one after the other; ``step_ns`` is the median step."""
        found = EvidenceWindows({}, {})
        ended = ""
        for instrument in instruments:
            reason = ended
            if not ended:
                try:
                    reason = self._use(instrument, step_ns, found.windows)
                except WorkloadEndedError:
                    reason = ended = "the pipeline ended before the evidence pass was over"
                except StallError as error:
                    # The sentence without the stacks of all threads.
                    reason = ended = str(error).partition(";")[0]
            if reason and instrument.name not in found.windows:
                found.unavailable[instrument.name] = reason
        return found

    def _use(
        self, instrument: Instrument, step_ns: int, windows: dict[str, tuple[int, int]]
    ) -> str:
        """Use one instrument; return why it has no window, or ``""``."""
        reason = self._begin(instrument)
        if reason:
            return reason
        try:
            empty = self._step_in_window(instrument, step_ns, windows)
        except (WorkloadEndedError, StallError):
            if self._end(instrument):
                windows.pop(instrument.name, None)
            raise
        except BaseException:
            # The workload's own error goes on; whatever else fails on the way out does not hide it.
            with contextlib.suppress(Exception):
                self._end(instrument, hold_s=HOLD_AFTER_ERROR_S)
            raise
        reason = self._end(instrument)
        if reason:
            windows.pop(instrument.name, None)
        return reason or empty

    def _step_in_window(
        self, instrument: Instrument, step_ns: int, windows: dict[str, tuple[int, int]]
    ) -> str:
        """Make the steps; keep the window if it holds one, also where the workload ends in it.

        Returns why there is no window, or ``""``.
        """
        self._enter(EVIDENCE, step_ns)
        # The window begins at a mark that was made after the instrument had begun.
        begun = self._marks()
        self._step(max(instrument.lead_in, 1), 0.0, instrument.most_s)
        marks = self._marks()
        if marks == begun:
            return NO_STEP
        start_ns = self._workload.now_ns(instrument.at_rest)
        ended: WorkloadEndedError | StallError | None = None
        try:
            self._step(instrument.steps, instrument.least_s, instrument.most_s)
        except (WorkloadEndedError, StallError) as error:
            ended = error
        self._enter(EVIDENCE)
        found = self._marks() > marks
        if found:
            windows[instrument.name] = (start_ns, self._workload.now_ns(instrument.at_rest))
        if ended is not None:
            raise ended
        return "" if found else NO_STEP

    def _begin(self, instrument: Instrument) -> str:
        self._enter(EVIDENCE)
        with self._standing(instrument, HOLD_S) as running:
            if running:
                return running
            refused = instrument.begin()
        return "" if refused is None else str(refused)

    def _end(self, instrument: Instrument, hold_s: float = HOLD_S) -> str:
        self._enter(EVIDENCE)
        ended = False
        try:
            with self._standing(instrument, hold_s) as running:
                ended = True
                instrument.end(running)
                return running
        finally:
            # A device that failed cannot even be synchronized.
            if not ended:
                instrument.end("the workload")

    @contextmanager
    def _standing(self, instrument: Instrument, hold_s: float) -> Iterator[str]:
        """Enter with why the workers do not stand although they must, or ``""``."""
        if not instrument.at_rest:
            yield ""
            return
        with self._workload.resting(hold_s) as running:
            yield (
                f"worker {running!r} came to no mark or queue call for {hold_s:g} s: call "
                "step_end() or use a recorder queue regularly in every worker"
                if running
                else ""
            )

    def _step(self, steps: int, least_s: float, most_s: float) -> None:
        begun_ns, goal = self._clock.monotonic_ns(), self._marks() + steps

        def done() -> bool:
            elapsed_s = (self._clock.monotonic_ns() - begun_ns) / SECOND_NS
            return elapsed_s >= most_s or (elapsed_s >= least_s and self._marks() >= goal)

        self._workload.step_until(done)

    def _marks(self) -> int:
        return sum(one.mark_count for one in self._recorder.counting_streams(self._constant))

    def _enter(self, phase: int, step_ns: int | None = None) -> None:
        enter(self._recorder.beat, phase, self._clock.monotonic_ns(), step_ns)


def evidence_passes(
    windows: dict[str, tuple[int, int]], recorder: Recorder, budget: Budget
) -> list[Pass]:
    """Return a pass for each window that holds a step: its counting marks, tokens and rate."""
    marks = [
        one for one in recorder.mark_series(budget.token_kind, budget.constant_tokens) if one.counts
    ]
    passes = []
    for name, (start_ns, end_ns) in windows.items():
        tokens: dict[str, int] = {}
        steps = 0
        for series in marks:
            first, last = (bisect_right(series.times_ns, one) for one in (start_ns, end_ns))
            steps += last - first
            for kind, counts in series.tokens.items():
                tokens[kind] = tokens.get(kind, 0) + sum(counts[first:last])
        if steps:
            rate = tokens.get(budget.token_kind, 0) * SECOND_NS / (end_ns - start_ns)
            passes.append(
                Pass(
                    kind="evidence",
                    instrument=name,
                    start_ns=start_ns,
                    end_ns=end_ns,
                    steps=steps,
                    tokens=tokens,
                    tok_s=rate,
                )
            )
    return passes
