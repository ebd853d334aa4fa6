"""The step loop of an A/B: it steps when it is told, and holds still in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..errors import StepError
from ..ports import Clock, Devices, Instrument, Pacer
from ..records.budget import Budget
from .beat import SETUP, TIMING, WARM_UP, enter, until_over
from .loop import WORKER, PassEnd, StepLoop
from .measurement import Measurement, require_steps
from .recorder import Recorder


class Turns(NamedTuple):
    """Who says when to step, and the instruments that get their windows after the last block."""

    pacer: Pacer
    instruments: Sequence[Instrument] = ()


def measure_in_turn(
    step: Callable[[], object],
    recorder: Recorder,
    budget: Budget,
    devices: Devices,
    clock: Clock,
    turns: Turns,
) -> Measurement:
    """Measure ``step`` as ``loop.measure_steps`` does, in blocks, when ``turns.pacer`` says so.

    The devices are synchronized at the ends of each block; there are no canaries. Raises what
    ``measure_steps`` raises, and ``MeasureError`` when the A/B was broken off.
    """
    require_steps(budget)
    with recorder.worker(WORKER, counts=True), until_over(recorder.beat, clock):
        return _PacedLoop(step, recorder, budget, devices, clock).run_paced(turns)


class _PacedLoop(StepLoop):
    def run_paced(self, turns: Turns) -> Measurement:
        """Warm up and step when told; hold still, with nothing queued, in between."""
        beat, clock, pacer = self._recorder.beat, self._clock, turns.pacer
        enter(beat, SETUP, clock.monotonic_ns())
        pacer.await_warm_up()
        self._began_ns = clock.monotonic_ns()
        enter(beat, WARM_UP, self._began_ns)
        unsteady = self._warm_up()
        warmup_steps, readings = self._done, self._judge.readings.now()
        warmup_s = (clock.monotonic_ns() - self._began_ns) / 1e9
        step_ns = self._median_ns() or 0
        used = self._devices.used()
        if len(used) == 1:
            self._stream.device = used[0]
        self._devices.synchronize()
        pacer.warmed_up(step_ns)
        blocks: list[tuple[int, int]] = []
        while True:
            enter(beat, SETUP, clock.monotonic_ns())
            steps = pacer.next_block()
            if not steps:
                break
            blocks.append(self._block(steps, step_ns))
            pacer.block_done(steps, blocks[-1][1] - blocks[-1][0])
        self._cut_window(warmup_steps, blocks)
        self._judge.readings.take(self._done)
        # No change point is looked for: what the host does in a pair, it does to both sides.
        reason = unsteady or self._judge.readings.disturbed_since(readings)
        compiled = self._judge.readings.compiled_since(readings)
        found = self._collected(PassEnd(warmup_steps, warmup_s, reason, compiled))
        return self._with_instruments(found, turns.instruments)

    def _block(self, steps: int, step_ns: int) -> tuple[int, int]:
        """Make ``steps`` steps; return when they began and ended."""
        enter(self._recorder.beat, TIMING, self._clock.monotonic_ns(), step_ns)
        start_ns = self._clock.monotonic_ns()
        self._run(steps, "timing pass")
        self._devices.synchronize()
        return start_ns, self._clock.monotonic_ns()

    def _cut_window(self, warmup_steps: int, blocks: list[tuple[int, int]]) -> None:
        """Make ``blocks`` the timing pass."""
        if not blocks:
            raise StepError("the A/B ended before a step of the timing pass was made")
        self._refuse_own_marks()
        self._stream.window = (warmup_steps - 1, self._done - 1)
        self._stream.window_ns = (blocks[0][0], blocks[-1][1])
        self._stream.pauses_ns = [
            (before[1], after[0]) for before, after in itertools.pairwise(blocks)
        ]
