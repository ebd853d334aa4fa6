"""A slow machine is not slow code, and a fast one hides it: the canaries tell."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import msgspec
import numpy as np
import pytest

from pytest_tokbudget.analysis.canaries import (
    follows,
    key_that_matters,
    medians_ms,
    normalized_baseline,
    shift,
)
from pytest_tokbudget.judging import judge
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.run import CanarySeries, RunRecord
from pytest_tokbudget.records.verdict import Outcome

from .cases import baseline, budget, session, stored

TINY = "interleaved/tiny_step"


def series(ms: float, name: str = "tiny_step", where: str = "interleaved") -> CanarySeries:
    return CanarySeries(
        name=name, where=where, times_ns=[1, 2, 3], durations_ns=[round(ms * 1e6)] * 3
    )


def run(tok_s: float, ms: float | None) -> RunRecord:
    return session(tok_s, canaries=[] if ms is None else [series(ms)])


def known(rates: Sequence[float], canaries_ms: Sequence[float | None], anchor: int = 5) -> Baseline:
    sessions = [
        msgspec.structs.replace(
            stored(rate, job=f"job {index}"), canaries_ms={} if ms is None else {TINY: ms}
        )
        for index, (rate, ms) in enumerate(zip(rates, canaries_ms))
    ]
    whole = baseline([], appended=sessions[anchor:])
    return msgspec.structs.replace(whole, anchor=sessions[:anchor])


STEADY = known([1000, 1001, 999, 1000, 1000], [1.0, 1.001, 0.999, 1.0, 1.0])


@pytest.mark.parametrize(
    ("ms", "outcome"),
    [(1.0, "REGRESSED"), (1.03, "REGRESSED"), (1.06, "UNFIT"), (1.7, "UNFIT"), (0.8, "REGRESSED")],
)
def test_regressed_stands_only_while_the_canary_slowed_by_less_than_half(
    ms: float, outcome: str
) -> None:
    verdict = judge([run(900, ms)] * 3, STEADY, budget(), max_sessions=3)
    assert verdict.outcome is Outcome(outcome)
    if ms == 1.7:
        assert verdict.sentences[0] == (
            "This host runs a tiny forward and backward 1.7x slower than the baseline's."
        )


def test_a_canary_within_its_own_noise_excuses_nothing() -> None:
    noisy = known([1000, 1001, 999, 1000, 1000], [1.0, 1.3, 0.8, 1.1, 0.9])
    verdict = judge([run(900, 1.07)] * 3, noisy, budget(), max_sessions=3)
    assert verdict.outcome is Outcome.REGRESSED


@pytest.mark.parametrize("missing", ["new", "one of the new", "baseline", "one of the baseline"])
def test_without_readings_on_both_sides_nothing_is_excused(missing: str) -> None:
    canaries: list[float | None] = [1.0] * 5
    new: list[float | None] = [1.7] * 3
    if missing == "new":
        new = [None] * 3
    elif missing == "one of the new":
        new[1] = None
    elif missing == "baseline":
        canaries = [None] * 5
    else:
        canaries[2] = None
    base = known([1000, 1001, 999, 1000, 1000], canaries)
    verdict = judge([run(900, ms) for ms in new], base, budget(), max_sessions=3)
    assert verdict.outcome is Outcome.REGRESSED


def test_a_faster_canary_fails_no_test_of_a_workload_not_known_to_follow_it() -> None:
    verdict = judge([run(1000, 0.5)], STEADY, budget(), max_sessions=3)
    assert verdict.outcome is Outcome.PASS


def following(seed: int = 0, sessions: int = 15) -> Baseline:
    """Rates that vary by 5 % from host to host, as their canaries do."""
    drawn = np.random.default_rng(seed)
    mood = drawn.normal(0, 0.05, sessions)
    rates = [1000 * exp(-m + e) for m, e in zip(mood, drawn.normal(0, 0.002, sessions))]
    return known(rates, [exp(m + e) for m, e in zip(mood, drawn.normal(0, 0.002, sessions))])


def test_slow_code_cannot_hide_behind_a_faster_machine_it_is_known_to_follow() -> None:
    base = following()
    assert follows(base, TINY)
    wide = budget(0.2)
    mean = float(np.exp(np.mean([np.log(one.tok_s) for one in base.anchor])))
    verdict = judge([run(mean, 0.7)] * 2, base, wide, max_sessions=3)
    assert verdict.outcome is Outcome.UNFIT
    assert verdict.sentences[0].startswith("This host runs a tiny forward and backward")
    assert "faster than the baseline's" in verdict.sentences[0]
    assert judge([run(mean, 1.0)] * 2, base, wide, max_sessions=3).outcome is Outcome.PASS


def test_the_normalized_rate_decides_what_the_mean_cannot() -> None:
    base = following()
    new = [run(1000 * exp(-mood), exp(mood)) for mood in (0.03, 0.02, 0.04)]
    bare = [run(one.timing.tok_s, None) for one in new]
    assert judge(bare, base, budget(0.03), max_sessions=3).outcome is Outcome.INCONCLUSIVE
    found = judge(new, base, budget(0.03), max_sessions=3)
    assert found.outcome is Outcome.PASS
    assert "a tiny forward and backward" in found.sentences[0]


def test_the_normalized_rate_sees_slow_code_on_a_host_of_any_mood() -> None:
    base = following()
    new = [run(1000 * exp(-mood - 0.08), exp(mood)) for mood in (0.03, -0.01, 0.02)]
    assert judge(new, base, budget(0.03), max_sessions=3).outcome is Outcome.REGRESSED


def test_unchanged_code_is_not_failed_by_its_canaries() -> None:
    """500 jobs of three sessions on hosts of every mood, where the mean alone decides little."""
    drawn = np.random.default_rng(1)
    base = following(2)
    outcomes = []
    for _ in range(500):
        mood = drawn.normal(0, 0.05)
        new = [
            run(1000 * exp(-mood + drawn.normal(0, 0.002)), exp(mood + drawn.normal(0, 0.002)))
            for _ in range(3)
        ]
        outcomes.append(judge(new, base, budget(0.03), max_sessions=3).outcome)
    assert outcomes.count(Outcome.REGRESSED) <= 5
    assert outcomes.count(Outcome.PASS) >= 450


def test_a_workload_that_waits_does_not_follow_the_processor() -> None:
    drawn = np.random.default_rng(3)
    waiting = known(
        [1000 * exp(e) for e in drawn.normal(0, 0.01, 20)],
        [exp(m) for m in drawn.normal(0, 0.1, 20)],
    )
    assert not follows(waiting, TINY)
    mood = drawn.normal(0, 0.05, 40)
    loud = [1000 * exp(-m + e) for m, e in zip(mood, drawn.normal(0, 0.15, 40))]
    assert not follows(known(loud, [exp(m) for m in mood]), TINY), "it explains too little"
    assert not follows(following(sessions=9), TINY)


def test_what_ran_inside_the_pass_matters_before_what_ran_around_it() -> None:
    both = {"around/host_loop": 1.0, "interleaved/tiny_step cuda:0": 1.0, "around/device_matmul": 1}
    base = baseline([1000] * 3)
    base = msgspec.structs.replace(
        base, anchor=[msgspec.structs.replace(one, canaries_ms=both) for one in base.anchor]
    )
    assert key_that_matters(base, [both]) == "interleaved/tiny_step cuda:0"
    assert key_that_matters(base, [{"around/host_loop": 1.0}]) == "around/host_loop"
    assert key_that_matters(base, [{}]) is None
    assert key_that_matters(baseline([1000] * 2), [both]) is None


def test_readings_before_and_after_are_one_and_zeros_are_none() -> None:
    found = medians_ms(
        [
            series(1.0, where="before"),
            series(3.0, where="after"),
            series(2.0, name="host_loop"),
            CanarySeries(name="x", where="before", times_ns=[1], durations_ns=[0]),
        ]
    )
    assert found == {"around/tiny_step": 2.0, "interleaved/host_loop": 2.0}


def test_the_shift_and_the_normalized_rate_are_what_they_say() -> None:
    moved = shift(STEADY, [{TINY: 1.1}], TINY)
    assert moved.c == pytest.approx(np.log(1.1), abs=1e-3)
    assert moved.doubt > 0
    base = normalized_baseline(known([1000, 500, 2000], [1.0, 2.0, 0.5], anchor=3), TINY)
    assert [one.tok_s for one in base.anchor] == pytest.approx([1000, 1000, 1000])
