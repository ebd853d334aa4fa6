"""One judgement among several, and how several become one.

The throughput rule and the floor each return a ``Ruling``; whatever else may judge a session
(the machine's fitness, counters, ceilings) returns one too, and ``combined`` weighs them all alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_tokbudget.records.verdict import Outcome

_WEIGHT = {
    Outcome.PASS: 0,
    Outcome.IMPROVED: 1,
    Outcome.RECORDED: 2,
    Outcome.INCONCLUSIVE: 3,
    Outcome.NO_BASELINE: 4,
    Outcome.WORKLOAD_CHANGED: 5,
    Outcome.REGRESSED: 6,
    Outcome.UNFIT: 7,
}
"""The heavier outcome wins. UNFIT is the heaviest: a machine that cannot be judged on proves
nothing about the code. IMPROVED outweighs PASS, so that a floor held does not hide it."""


@dataclass(frozen=True)
class Ruling:
    """An outcome, its sentences (most important first), whether another session may change it.

    With ``wants_more`` the outcome is what it would be without another session.
    """

    outcome: Outcome
    sentences: tuple[str, ...]
    wants_more: bool = False


def combined(rulings: Sequence[Ruling]) -> Ruling:
    """Return the heaviest outcome with the sentences of all, its own first.

    Another session is wanted while one ruling wants it, unless a settled ruling has failed the test
    already. Raises ``ValueError`` for no rulings: a test that nothing judged must not pass.
    """
    if not rulings:
        raise ValueError("nothing judged this test: expected at least one ruling, found none")
    ordered = sorted(rulings, key=lambda one: _WEIGHT[one.outcome], reverse=True)
    settled = any(
        not one.wants_more and _WEIGHT[one.outcome] > _WEIGHT[Outcome.INCONCLUSIVE]
        for one in rulings
    )
    return Ruling(
        outcome=ordered[0].outcome,
        sentences=tuple(sentence for one in ordered for sentence in one.sentences),
        wants_more=not settled and any(one.wants_more for one in rulings),
    )
