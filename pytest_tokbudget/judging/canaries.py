"""Whether the machine, not the code, was slow: the canary guard and the normalized rate."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1

from pytest_tokbudget.analysis.canaries import (
    Shift,
    follows,
    key_that_matters,
    medians_ms,
    normalized_baseline,
    normalized_x,
    shift,
)
from pytest_tokbudget.analysis.looks import Look, anchor_of, look
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome

from .ruling import Ruling
from .wording import change, interval, percent, share

_NAMES = {
    "host_loop": "the fixed loop",
    "tiny_step": "a tiny forward and backward",
    "device_matmul": "a fixed matrix product",
}


class Witness:
    """What the canaries of the sessions that count say, beside those of a baseline.

    ``normalizes`` is whether the baseline's sessions prove that dividing by the canary helps.
    """

    def __init__(self, baseline: Baseline, runs: Sequence[RunRecord]) -> None:
        self._baseline, self._runs = baseline, runs
        self._canaries = [medians_ms(run.canaries) for run in runs]
        self._key = key_that_matters(baseline, self._canaries)
        self.normalizes = self._key is not None and follows(baseline, self._key)

    def guard(self, ruling: Ruling, mean: Look, delta: float) -> Ruling:
        """Return ``ruling``, or UNFIT where the machine may be what it rests on.

        REGRESSED stands only while the canary slowed by less than d/2 (or within its own noise);
        PASS only while a canary that the workload is known to follow did not speed up by more than
        δ, beyond its noise: there slower code would hide behind a faster machine.
        """
        if self._key is None:
            return ruling
        d = mean.d
        counted = [self._canaries[index] for index in mean.counted]
        seen = shift(self._baseline, counted, self._key)
        slowed = seen.c >= d / 2 and seen.c > seen.doubt
        sped_up = self.normalizes and seen.c + seen.doubt < -delta
        if ruling.outcome is Outcome.REGRESSED and slowed:
            advice = (
                f"{change(d)}, yet the machine can explain at least half of it: measure again "
                "elsewhere or later, or compare on this machine (--tokbudget-against)."
            )
        elif ruling.outcome is Outcome.PASS and sped_up:
            advice = (
                f"{change(d)} on a faster machine proves nothing: slower code would look the same. "
                "Measure again elsewhere or later, or compare on this machine "
                "(--tokbudget-against)."
            )
        else:
            return ruling
        return Ruling(Outcome.UNFIT, (_machine(seen), advice), ruling.wants_more)

    def second_look(self, mean: Look, delta: float, most: int, lost: int) -> Look | None:
        """Return the look at the canary-normalized rate where it decides and the mean did not."""
        if self._key is None or not self.normalizes or mean.outcome is not Outcome.INCONCLUSIVE:
            return None
        key = self._key
        x = [
            normalized_x(run.timing.tok_s, canaries, key)
            for run, canaries in zip(self._runs, self._canaries)
        ]
        anchor = anchor_of(normalized_baseline(self._baseline, key))
        seen = look(anchor, x, delta, most=most, lost=lost, share=0.5)
        opposed = seen.outcome is Outcome.REGRESSED and mean.d <= 0
        return None if opposed or seen.outcome is Outcome.INCONCLUSIVE else seen

    def ruling(self, seen: Look, tolerance: float) -> Ruling:
        """Put a second look into words. What a faster machine gave is no improvement."""
        name = _name(self._key or "")
        sentence = (
            f"Measured by {name} in the same pass, {_lower(change(seen.d))} (99 % interval "
            f"{interval(seen.d, seen.half_width)}), tolerance {share(tolerance)}."
        )
        outcome = Outcome.PASS if seen.outcome is Outcome.IMPROVED else seen.outcome
        return Ruling(outcome, (sentence,), wants_more=not seen.settled)


def _machine(seen: Shift) -> str:
    way = "slower" if seen.c > 0 else "faster"
    ratio = exp(abs(seen.c))
    much = f"{ratio:.1f}x" if ratio >= 1.2 else percent(100 * abs(expm1(abs(seen.c))))
    return f"This host runs {_name(seen.key)} {much} {way} than the baseline's."


def _name(key: str) -> str:
    name, _, device = key.partition("/")[2].partition(" ")
    return _NAMES.get(name, name) + (f" on {device}" if device else "")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
