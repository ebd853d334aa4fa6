"""The evidence pass: after the timing pass, one more stretch of steps for each instrument."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from ..errors import StallError
from ..ports import Clock, Instrument
from ..records.budget import Budget
from ..records.run import Pass
from .beat import EVIDENCE, SECOND_NS, SETUP, enter
from .recorder import Recorder

HOLD_S = 10.0
"""How long a worker may take to come to a mark or a queue call."""


class WorkloadEndedError(Exception):
    """The workload made its last step by itself; nobody outside ``measuring`` sees this."""


class Workload(Protocol):
    """What the evidence pass needs of a workload that has been timed."""

    def resting(self) -> AbstractContextManager[str]:
        """Let no worker be in a step, and the devices be idle, inside the block.

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
                    reason = ended = f"in the evidence pass {error}"
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
        start_ns = None
        try:
            self._enter(EVIDENCE, step_ns)
            self._step(instrument.lead_in, 0.0, instrument.most_s)
            start_ns = self._workload.now_ns(instrument.at_rest)
            self._step(instrument.steps, instrument.least_s, instrument.most_s)
        finally:
            self._enter(SETUP)
            if start_ns is not None:
                self._keep(instrument, start_ns, windows)
            reason = self._end(instrument)
        if reason:
            windows.pop(instrument.name, None)
        return reason

    def _begin(self, instrument: Instrument) -> str:
        self._enter(SETUP)
        with self._standing(instrument) as running:
            if running:
                return running
            refused = instrument.begin()
        return "" if refused is None else str(refused)

    def _end(self, instrument: Instrument) -> str:
        with self._standing(instrument) as running:
            instrument.end(running)
        return running

    @contextmanager
    def _standing(self, instrument: Instrument) -> Iterator[str]:
        """Enter with why the workers do not stand although they must, or ``""``."""
        if not instrument.at_rest:
            yield ""
            return
        with self._workload.resting() as running:
            yield (
                f"worker {running!r} came to no mark or queue call for {HOLD_S:.0f} s: call "
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

    def _keep(
        self, instrument: Instrument, start_ns: int, windows: dict[str, tuple[int, int]]
    ) -> None:
        """Keep the window if it holds a step, also where the workload ended inside it."""
        end_ns = self._workload.now_ns(instrument.at_rest)
        if end_ns > start_ns:
            windows[instrument.name] = (start_ns, end_ns)

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
