"""The judge of an A/B: pairs of sessions at a git ref and at the tree under test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log1p

import msgspec
import numpy as np

from pytest_tokbudget.analysis.exact_counters import exact_counters
from pytest_tokbudget.analysis.pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    PairLook,
    look_at_pairs,
    pairs_needed,
)
from pytest_tokbudget.analysis.spread import slowness
from pytest_tokbudget.analysis.stats import percent_of_rate
from pytest_tokbudget.errors import MeasureError
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome, SessionFigure, Verdict

from .admission import admit
from .ceilings import judge_ceiling
from .comparable import differing_fields
from .counter_changes import changed_counters
from .floor import judge_floor
from .pair_counters import judge_pair_counters
from .ruling import Ruling, combined
from .wording import change, count, interval, must_show, share

MOST_UNSTEADY = 2
"""Pairs that may be lost because a side never became steady; with more there is no verdict."""


@dataclass(frozen=True)
class Pair:
    """One session at the ref and one at the tree under test, measured as a pair."""

    ref: RunRecord
    head: RunRecord

    @property
    def d(self) -> float:
        """How much slower HEAD is, in x = −log tok/s."""
        return slowness(self.head.timing.tok_s) - slowness(self.ref.timing.tok_s)

    @property
    def unsteady(self) -> str:
        """Why a side never became steady, ``""`` where both did."""
        for name, run in (("the ref's side", self.ref), ("this side", self.head)):
            if not run.warmup.steady:
                return f"{name} never became steady" + (
                    f": {run.warmup.reason}" if run.warmup.reason else ""
                )
        return ""


def judge_pairs(
    pairs: Sequence[Pair], budget: Budget, *, against: str, may_measure: bool
) -> Verdict:
    """Judge the pairs measured so far by the rule of ``analysis.pairs``.

    ``budget`` is HEAD's and must have a tolerance; ``against`` names the ref in sentences
    (``"main (abc1234)"``). ``tok_s`` of the verdict is HEAD's, ``baseline_tok_s`` the ref's,
    ``sessions`` are HEAD's. It wants more while it is undecided, ``may_measure`` and fewer than
    ``MOST_PAIRS`` pairs were measured. HEAD's floor and ceilings are judged beside it, and with
    ``counters="fail"`` the counters of both sides (``judging.pair_counters``).

    Raises what ``admission.admit`` raises, for either side, and ``MeasureError`` where the two
    sides of a pair are not of one test.
    """
    heads, refs = [pair.head for pair in pairs], [pair.ref for pair in pairs]
    admit(heads, budget)
    admit(refs, msgspec.structs.replace(refs[0].budget, tolerance=budget.tolerance))
    assert budget.tolerance is not None, "an A/B compares: the caller judges a bare floor"
    changed = _workload_changed(pairs[0], against)
    counted = [pair for pair in pairs if not pair.unsteady]
    look = None
    if changed is not None:
        ruling = changed
    elif len(pairs) - len(counted) > MOST_UNSTEADY or not counted:
        counters = _counters(heads, refs, budget, against, may_measure=may_measure)
        ruling = combined([_unsteady(pairs, counted), *counters])
    else:
        look = look_at_pairs([pair.d for pair in counted], -log1p(-budget.tolerance))
        ruling = combined(
            [
                _ruling(look, counted, budget.tolerance, against),
                *_limits([pair.head for pair in counted], budget, may_measure=may_measure),
                *_counters(heads, refs, budget, against, may_measure=may_measure),
            ]
        )
    more = ruling.wants_more and may_measure and len(pairs) < MOST_PAIRS
    ruling = replace(ruling, wants_more=more)
    return _verdict(pairs, counted, budget, look, ruling, against)


def _limits(heads: Sequence[RunRecord], budget: Budget, *, may_measure: bool) -> list[Ruling]:
    """Floor and ceilings are HEAD's alone, and judged as they are without a ref."""
    rulings = [
        judge_ceiling(heads, name, ceiling, least=1, may_measure=may_measure)
        for name, ceiling in budget.ceilings.items()
    ]
    if budget.floor_tok_s is not None:
        x = [slowness(run.timing.tok_s) for run in heads]
        rulings.append(judge_floor(x, budget.floor_tok_s, least=1, may_measure=may_measure))
    return rulings


def _counters(
    heads: Sequence[RunRecord],
    refs: Sequence[RunRecord],
    budget: Budget,
    against: str,
    *,
    may_measure: bool,
) -> list[Ruling]:
    """What a step does is exact in a pair of any speed, so all pairs count."""
    if budget.counters != "fail":
        return []
    return [judge_pair_counters(heads, refs, against=against, may_measure=may_measure)]


def _changed_counters(pairs: Sequence[Pair]) -> dict[str, tuple[float, float]]:
    return changed_counters(
        exact_counters(pairs[0].head), [exact_counters(pair.ref) for pair in pairs]
    )


def _verdict(
    pairs: Sequence[Pair],
    counted: Sequence[Pair],
    budget: Budget,
    look: PairLook | None,
    ruling: Ruling,
    against: str,
) -> Verdict:
    shown = counted or pairs
    head = float(np.mean([slowness(pair.head.timing.tok_s) for pair in shown]))
    ref = float(np.mean([slowness(pair.ref.timing.tok_s) for pair in shown]))
    compared = ruling.outcome is not Outcome.WORKLOAD_CHANGED
    look = look if compared else None
    lost = [
        f"Pair {index + 1}: {pair.unsteady}." for index, pair in enumerate(pairs) if pair.unsteady
    ]
    half = look.half_width if look else None
    return Verdict(
        outcome=ruling.outcome,
        sentences=[*ruling.sentences, *lost],
        tok_s=exp(-head),
        baseline_tok_s=exp(-ref) if compared else None,
        change_pct=percent_of_rate(head - ref) if compared else None,
        ci_pct=None
        if look is None or half is None
        else (percent_of_rate(look.d + half), percent_of_rate(look.d - half)),
        mde_pct=None
        if look is None or look.detectable is None
        else -percent_of_rate(look.detectable),
        tolerance_pct=100 * (budget.tolerance or 0),
        floor_tok_s=budget.floor_tok_s,
        sessions=[
            SessionFigure(
                tok_s=pair.head.timing.tok_s,
                steps=pair.head.timing.steps,
                warmup_steps=pair.head.warmup.steps,
                set_aside=pair.unsteady,
            )
            for pair in pairs
        ],
        wants_more=ruling.wants_more,
        changed_counters={} if ruling.wants_more else _changed_counters(pairs),
        against=against,
    )


def _workload_changed(pair: Pair, against: str) -> Ruling | None:
    if pair.ref.workload.qualname != pair.head.workload.qualname:
        raise MeasureError(
            f"the two sides of a pair measured two tests: {pair.head.workload.identity} and, at "
            f"{against}, {pair.ref.workload.identity}"
        )
    differences = differing_fields(pair.ref.workload.declaration, pair.head.workload.declaration)
    if pair.ref.budget.token_kind != pair.head.budget.token_kind and not differences:
        kinds = (pair.ref.budget.token_kind, pair.head.budget.token_kind)
        differences = [f"token_kind {kinds[0]} → {kinds[1]}"]
    if not differences:
        return None
    sentence = f"The workload is not the one of {against}: {'; '.join(differences)}."
    advice = "Two workloads cannot be compared: judge each against a ref that declares the same."
    return Ruling(Outcome.WORKLOAD_CHANGED, (sentence, advice))


def _unsteady(pairs: Sequence[Pair], counted: Sequence[Pair]) -> Ruling:
    lost = len(pairs) - len(counted)
    sentence = f"No steady state in {lost} of {count(len(pairs), 'pair')}."
    advice = "Warm up longer, or remove what changes the step time; then measure again."
    return Ruling(Outcome.INCONCLUSIVE, (sentence, advice), wants_more=lost <= MOST_UNSTEADY)


def _ruling(look: PairLook, counted: Sequence[Pair], tolerance: float, against: str) -> Ruling:
    changed = change(look.d, than=against)
    pairs = count(len(counted), "pair")
    if look.outcome is Outcome.INCONCLUSIVE or look.half_width is None:
        return _undecided(look, counted, tolerance, against)
    shown = f"{pairs} of fresh processes; 99 % interval {interval(look.d, look.half_width)}."
    if look.outcome is Outcome.PASS:
        first = (
            f"{changed}, tolerance {share(tolerance)}: code "
            f"{share(must_show(tolerance))} slower would look this good in fewer than 1 run in 100."
        )
    elif look.outcome is Outcome.IMPROVED:
        first = f"{changed}."
    else:
        first = (
            f"{changed}, tolerance {share(tolerance)}: unchanged code would look this slow in "
            "fewer than 1 run in 100."
        )
    return Ruling(look.outcome, (first, shown))


def _undecided(look: PairLook, counted: Sequence[Pair], tolerance: float, against: str) -> Ruling:
    changed = change(look.d, than=against)
    pairs = count(len(counted), "pair")
    if look.half_width is None or len(counted) < FEWEST_PAIRS:
        doubt = f"{changed} in {pairs}: {FEWEST_PAIRS} are the fewest that allow a verdict."
    else:
        doubt = (
            f"{changed} in {pairs}, 99 % interval {interval(look.d, look.half_width)}: too "
            f"uncertain for a tolerance of {share(tolerance)}."
        )
    needed = pairs_needed([pair.d for pair in counted], -log1p(-tolerance), MOST_PAIRS)
    if len(counted) < FEWEST_PAIRS:
        needed = max(needed or 0, FEWEST_PAIRS)
    if needed is not None:
        advice = f"{count(needed, 'pair')} that lie like these would decide (--tokbudget-max-time)."
    else:
        advice = (
            f"More than {MOST_PAIRS} pairs would be needed: widen the tolerance, or find out what "
            "makes one process of this test slower than another."
        )
    return Ruling(Outcome.INCONCLUSIVE, (doubt, advice), wants_more=True)
