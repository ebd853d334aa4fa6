"""The judge: fail closed → comparable → steady → throughput → floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, expm1, log1p

import numpy as np

from pytest_tokbudget.analysis.exact_counters import exact_counters
from pytest_tokbudget.analysis.looks import Look, anchor_of, look
from pytest_tokbudget.analysis.spread import slowness
from pytest_tokbudget.analysis.stats import percent_of_rate
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.budget import Budget
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome, SessionFigure, Verdict

from .admission import admit, admit_baseline
from .canaries import Witness
from .ceilings import judge_ceiling
from .comparable import software_changed, workload_changed
from .counter_changes import changed_counters
from .counters import anchor_counters, judge_counters
from .fitness import excused, unfit
from .floor import judge_floor
from .ruling import Ruling, combined
from .throughput import rule_on
from .wording import count, rate

FEWEST_ANCHOR_SESSIONS = 3
MOST_LEFT_OUT = 1


def judge(
    runs: Sequence[RunRecord],
    baseline: Baseline | Unavailable | None,
    budget: Budget,
    *,
    max_sessions: int,
) -> Verdict:
    """Judge the sessions measured so far, in the order they were measured.

    ``baseline`` is ``Unavailable`` where none exists for this machine class, and ``None`` where
    the author wants none (``tolerance=None``). When the verdict wants more, measure one more
    session and ask again with all of them; never more than ``max_sessions``. The figures are as
    ``Verdict`` documents them; ``mde_pct`` of a single session is that of two lying like it, since
    one alone never shows a slow-down.

    Raises ``NothingMeasuredError``, ``MeasureError``, ``UsageError``, ``MismatchError`` or
    ``UnreadableError`` where there is nothing that could be judged (``judging.admission``).
    """
    admit(runs, budget)
    case = _Case(runs, budget, max_sessions)
    if budget.tolerance is not None and isinstance(baseline, Baseline):
        admit_baseline(baseline, runs[0])
        case.baseline = baseline
    if case.baseline is not None:
        changed = workload_changed(runs[0], case.baseline)
        if changed is not None:
            return case.verdict(changed)
    return case.verdict(combined(_rulings(case, baseline)))


@dataclass
class _Case:
    """What one call of ``judge`` knows, and the figures it has found so far."""

    runs: Sequence[RunRecord]
    budget: Budget
    max_sessions: int
    baseline: Baseline | None = None
    seen: Look | None = None
    reasons: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reasons = {
            index: "never became steady" + (f": {reason}" if reason else "")
            for index, run in enumerate(self.runs)
            if not run.warmup.steady
            for reason in [run.warmup.reason]
        }
        self.lost = len(self.reasons)
        self.steady = [index for index in range(len(self.runs)) if index not in self.reasons]

    @property
    def remaining(self) -> int:
        """How many sessions may still be measured."""
        return max(0, self.max_sessions - len(self.runs))

    @property
    def x(self) -> list[float]:
        """−log tok/s of the sessions that count so far."""
        return [
            slowness(run.timing.tok_s)
            for index, run in enumerate(self.runs)
            if index not in self.reasons
        ]

    def verdict(self, ruling: Ruling) -> Verdict:
        """Return the verdict of ``ruling`` with the figures of this case."""
        sentences = list(ruling.sentences)
        sentences += [f"Session {index + 1} {why}." for index, why in self._left_out()]
        if self.baseline is not None:
            software = software_changed(self.runs[0], self.baseline)
            sentences += [software] if software else []
        x = self.x or [slowness(run.timing.tok_s) for run in self.runs]
        old = [slowness(one.tok_s) for one in self.baseline.anchor] if self.baseline else []
        d = float(np.mean(x) - np.mean(old)) if old else None
        tolerance = self.budget.tolerance
        return Verdict(
            outcome=ruling.outcome,
            sentences=sentences,
            tok_s=exp(-float(np.mean(x))),
            baseline_tok_s=exp(-float(np.mean(old))) if old else None,
            change_pct=None if d is None else percent_of_rate(d),
            ci_pct=self._interval(),
            mde_pct=None if self.seen is None else -100 * expm1(-self.seen.detectable),
            tolerance_pct=None if tolerance is None else 100 * tolerance,
            floor_tok_s=self.budget.floor_tok_s,
            sessions=self._figures(),
            wants_more=ruling.wants_more,
            changed_counters=(
                {}
                if self.baseline is None
                else changed_counters(exact_counters(self.runs[0]), anchor_counters(self.baseline))
            ),
        )

    def _left_out(self) -> list[tuple[int, str]]:
        return [
            (index, why if why.startswith("never") else f"was set aside ({why})")
            for index, why in sorted(self.reasons.items())
        ]

    def _interval(self) -> tuple[float, float] | None:
        if self.seen is None:
            return None
        d, h = self.seen.d, self.seen.half_width
        return percent_of_rate(d + h), percent_of_rate(d - h)

    def _figures(self) -> list[SessionFigure]:
        return [
            SessionFigure(
                tok_s=run.timing.tok_s,
                steps=run.timing.steps,
                warmup_steps=run.warmup.steps,
                set_aside=self.reasons.get(index, ""),
            )
            for index, run in enumerate(self.runs)
        ]


def _rulings(case: _Case, baseline: Baseline | Unavailable | None) -> list[Ruling]:
    """Return every ruling on this case. A further judge of sessions adds its own here."""
    if case.lost > MOST_LEFT_OUT or not case.steady:
        return [_unsteady(case), *_counters(case)]
    rulings: list[Ruling] = []
    if case.baseline is not None:
        rulings.append(_throughput(case, case.baseline))
    elif case.budget.tolerance is not None:
        rulings.append(_no_baseline(baseline))
    machine = unfit(case.runs, case.baseline)
    compared = case.baseline is not None or case.budget.tolerance is None
    if machine is not None and compared:
        rulings.append(machine)
    if case.budget.floor_tok_s is not None:
        left_out = len(case.reasons)
        rulings.append(
            judge_floor(
                case.x,
                case.budget.floor_tok_s,
                least=2 if left_out else 1,
                may_measure=case.remaining > 0,
            )
        )
    rulings += [
        judge_ceiling(
            [run for index, run in enumerate(case.runs) if index not in case.reasons],
            name,
            ceiling,
            least=2 if case.reasons else 1,
            may_measure=case.remaining > 0,
        )
        for name, ceiling in case.budget.ceilings.items()
    ]
    return [*rulings, *_counters(case)]


def _counters(case: _Case) -> list[Ruling]:
    """What a step does is exact in a session of any speed, so all sessions count."""
    if case.baseline is None or case.budget.counters != "fail":
        return []
    return [judge_counters(case.runs, case.baseline, may_measure=case.remaining > 0)]


def _unsteady(case: _Case) -> Ruling:
    """No verdict without a steady state; one unsteady session may be replaced by two steady."""
    helps = case.lost <= MOST_LEFT_OUT and case.max_sessions >= case.lost + 2
    sentence = f"No steady state in {case.lost} of {count(len(case.runs), 'session')}."
    advice = "Warm up longer, or remove what changes the step time; then measure again."
    return Ruling(Outcome.INCONCLUSIVE, (sentence, advice), wants_more=helps and case.remaining > 0)


def _no_baseline(baseline: Baseline | Unavailable | None) -> Ruling:
    if isinstance(baseline, Unavailable):
        return Ruling(
            Outcome.NO_BASELINE,
            (baseline.reason, baseline.remedy) if baseline.remedy else (baseline.reason,),
        )
    return Ruling(
        Outcome.NO_BASELINE,
        (
            "There is no baseline to compare with.",
            'Measure and store one: --tokbudget-refresh "first baseline".',
        ),
    )


def _throughput(case: _Case, baseline: Baseline) -> Ruling:
    have = len(baseline.anchor)
    if have < FEWEST_ANCHOR_SESSIONS:
        sentence = (
            f"The baseline rests on {count(have, 'session')}; {FEWEST_ANCHOR_SESSIONS} are the "
            'fewest that allow a verdict. Measure it again: --tokbudget-refresh "why".'
        )
        return Ruling(Outcome.INCONCLUSIVE, (sentence,))
    tolerance = case.budget.tolerance
    assert tolerance is not None
    delta = -log1p(-tolerance)
    anchor = anchor_of(baseline)
    witness = Witness(baseline, [case.runs[index] for index in case.steady])
    part = 0.5 if witness.normalizes else 1.0
    seen = look(anchor, case.x, delta, most=case.max_sessions, lost=case.lost, share=part)
    case.seen = seen
    if seen.set_aside is not None:
        index = case.steady[seen.set_aside]
        tok_s = case.runs[index].timing.tok_s
        case.reasons[index] = f"{rate(tok_s)}, slower than the others beyond chance: a slow host?"
    second = witness.second_look(seen, delta, case.max_sessions, case.lost)
    if second is not None:
        return witness.ruling(second, tolerance)
    ruling = rule_on(anchor, seen, tolerance=tolerance, delta=delta, lost=case.lost)
    counted = [case.runs[case.steady[index]] for index in seen.counted]
    return excused(witness.guard(ruling, seen, delta), counted, baseline, seen.d)
