"""Verdicts on pairs: outcomes, words, figures, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.errors import MeasureError, NothingMeasuredError
from pytest_tokbudget.judging import Pair, judge_pairs
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome, Verdict

from .cases import budget, session, timing, workload
from .test_counters import run

NOISE = (0.004, -0.004, 0.002, -0.002, 0.003, -0.003)


def pair(d: float, **head: Any) -> Pair:
    """A pair whose HEAD is slower by ``d`` in log tok/s."""
    return Pair(ref=session(10_000), head=session(10_000 * exp(-d), **head))


def judged(differences: Sequence[float], *, may_measure: bool = True) -> Verdict:
    pairs = [pair(d) for d in differences]
    return judge_pairs(pairs, budget(0.03), against="main (abc1234)", may_measure=may_measure)


def test_unchanged_code_passes_after_four_pairs() -> None:
    verdict = judged(NOISE[:4])

    assert verdict.outcome is Outcome.PASS
    assert not verdict.wants_more
    assert "main (abc1234)" in verdict.sentences[0]
    assert verdict.baseline_tok_s == pytest.approx(10_000)


def test_slow_code_fails_and_says_by_how_much() -> None:
    verdict = judged([0.08 + one for one in NOISE[:4]])

    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.sentences[0].startswith("7.7 % slower than main (abc1234), tolerance 3 %")
    assert verdict.change_pct == pytest.approx(100 * (exp(-0.08) - 1))
    assert verdict.ci_pct is not None
    assert verdict.ci_pct[0] < -7.7 < verdict.ci_pct[1] < 0


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"floor_tok_s": 9_000.0}, Outcome.PASS),
        ({"floor_tok_s": 11_000.0}, Outcome.REGRESSED),
        ({"ceilings": {"warmup_steps": 1e6}}, Outcome.PASS),
        ({"ceilings": {"warmup_steps": 0.0}}, Outcome.REGRESSED),
    ],
)
def test_floor_and_ceilings_are_judged_beside_the_pairs(
    limits: dict[str, Any], outcome: Outcome
) -> None:
    demanded = msgspec.structs.replace(budget(0.03), **limits)
    verdict = judge_pairs([pair(d) for d in NOISE[:4]], demanded, against="main", may_measure=True)

    assert verdict.outcome is outcome
    assert not verdict.wants_more
    assert any("tolerance 3 %" in one for one in verdict.sentences)


def counted(pairs: int, head: RunRecord, ref: RunRecord | None = None, **more: Any) -> Verdict:
    made = [Pair(ref=ref or run(9), head=head) for _ in range(pairs)]
    wanted = budget(0.03, counters=more.pop("counters", "fail"))
    return judge_pairs(made, wanted, against="main (abc1234)", **{"may_measure": True, **more})


def test_more_of_a_counter_fails_after_five_pairs() -> None:
    four, five = counted(4, run(12)), counted(5, run(12))

    assert (four.outcome, four.wants_more) == (Outcome.INCONCLUSIVE, True)
    assert "5 pairs that all show it would prove it" in " ".join(four.sentences)
    assert (five.outcome, five.wants_more) == (Outcome.REGRESSED, False)
    assert five.sentences[0] == (
        "kernel launches 9 → 12 a step in every step of 5 sessions "
        "(main (abc1234): 9 in 5 sessions)."
    )
    assert 'counters="show" until main (abc1234) has it too' in five.sentences[1]
    assert five.changed_counters == {"kernel_launches": (9.0, 12.0)}
    assert counted(5, run(9, tokens=65)).outcome is Outcome.WORKLOAD_CHANGED


def test_less_equal_or_inexact_counters_pass_and_are_shown() -> None:
    assert counted(4, run(9)).outcome is Outcome.PASS
    less = counted(4, run(7))
    assert (less.outcome, less.changed_counters) == (Outcome.PASS, {"kernel_launches": (9, 7)})
    assert any(one.startswith("Improved: kernel launches 9 → 7") for one in less.sentences)
    assert "refresh" not in " ".join(less.sentences)
    shown = counted(4, run(12), counters="show")
    assert (shown.outcome, shown.changed_counters) == (Outcome.PASS, {"kernel_launches": (9, 12)})
    varying = counted(4, run(12), run([8, 9] * 5 + [9, 9]))
    assert varying.outcome is Outcome.PASS
    assert "Not the same in every step of main (abc1234)" in " ".join(varying.sentences)


@pytest.mark.parametrize("side", ["head", "ref"])
def test_a_side_whose_devices_were_not_traced_fails_closed(side: str) -> None:
    sides = {"head": run(9), "ref": run(9), side: run(9, traced=None)}
    with pytest.raises(MeasureError, match="in pair 1: no device trace was asked for"):
        counted(4, sides["head"], sides["ref"])


def test_faster_code_is_improved() -> None:
    assert judged([-0.08 + one for one in NOISE[:4]]).outcome is Outcome.IMPROVED


def test_three_pairs_ask_for_more_unless_time_is_up() -> None:
    assert judged([0.0, 0.0, 0.0]).wants_more
    late = judged([0.0, 0.0, 0.0], may_measure=False)

    assert late.outcome is Outcome.INCONCLUSIVE
    assert not late.wants_more
    assert "4 are the fewest" in late.sentences[0]


def test_twelve_noisy_pairs_end_inconclusive() -> None:
    verdict = judged([0.3, -0.3] * 6)

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict.wants_more
    assert "too uncertain" in verdict.sentences[0]
    assert "More than 12 pairs" in verdict.sentences[1]


def test_another_declaration_is_another_workload() -> None:
    pairs = [pair(0.0, workload=workload(batch=2))]
    verdict = judge_pairs(pairs, budget(), against="main", may_measure=True)

    assert verdict.outcome is Outcome.WORKLOAD_CHANGED
    assert "batch absent → 2" in verdict.sentences[0]
    assert not verdict.wants_more
    assert verdict.change_pct is None


def test_unsteady_pairs_are_left_out_and_named() -> None:
    unsteady = Pair(ref=session(5_000, unsteady="it crept"), head=session(10_000))
    pairs = [unsteady, *(pair(one) for one in NOISE[:4])]
    verdict = judge_pairs(pairs, budget(), against="main", may_measure=True)

    assert verdict.outcome is Outcome.PASS
    assert "Pair 1: the ref's side never became steady: it crept." in verdict.sentences
    assert verdict.sessions[0].set_aside


def test_more_than_two_unsteady_pairs_give_no_verdict() -> None:
    unsteady = Pair(ref=session(10_000, unsteady="it crept"), head=session(10_000))
    pairs = [unsteady] * 3 + [pair(0.0)] * 6
    verdict = judge_pairs(pairs, budget(), against="main", may_measure=True)

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict.wants_more


@pytest.mark.parametrize("side", ["ref", "head"])
def test_a_side_without_steps_is_refused(side: str) -> None:
    sides = {"ref": session(10_000), "head": session(10_000)}
    sides[side] = session(10_000, passes=[timing(10_000, steps=0)])

    with pytest.raises(NothingMeasuredError):
        judge_pairs([Pair(**sides)], budget(), against="main", may_measure=True)
