"""Ceilings: the largest value of a figure of ``run.json``, judged by the new sessions alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_tokbudget.analysis.figures_by_name import figure, unit_of
from pytest_tokbudget.analysis.results import failed_result
from pytest_tokbudget.errors import MeasureError
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome

from .ruling import Ruling
from .wording import count

ROUNDING = 1e-9
"""A figure that equals its ceiling keeps it, whatever arithmetic did to its last digit."""


def judge_ceiling(
    runs: Sequence[RunRecord], name: str, ceiling: float, *, least: int, may_measure: bool
) -> Ruling:
    """Judge the figure ``name`` of each of ``runs``, the sessions that count, as a floor is judged.

    At or below ``ceiling`` in each: PASS, once ``least`` sessions count. Above it in each of at
    least two: REGRESSED. Else another session while one may be measured, and then their mean
    decides. Raises ``MeasureError`` where a session has no such figure, and ``UsageError`` for a
    name that is none.
    """
    values = [_figure_of(run, name) for run in runs]
    above = [value > ceiling + ROUNDING * max(1.0, abs(ceiling)) for value in values]
    if not any(above) and len(values) >= least:
        return Ruling(Outcome.PASS, (_sentence(name, values, ceiling),))
    sessions = count(len(values), "session")
    if all(above) and len(values) >= 2:
        return Ruling(
            Outcome.REGRESSED, (_sentence(name, values, ceiling, f", in each of {sessions}"),)
        )
    mean_above = float(np.mean(values)) > ceiling + ROUNDING * max(1.0, abs(ceiling))
    outcome = Outcome.REGRESSED if mean_above else Outcome.PASS
    if not mean_above and len(values) < least:
        outcome = Outcome.INCONCLUSIVE
    suffix = (
        " in the only session that counts"
        if len(values) == 1
        else f" on the mean of {sessions}, {sum(above)} of them above"
    )
    return Ruling(outcome, (_sentence(name, values, ceiling, suffix),), wants_more=may_measure)


def _figure_of(run: RunRecord, name: str) -> float:
    value, reason = figure(failed_result(run.workload.nodeid, "", "", [run]), name)
    if value is None:
        raise MeasureError(
            f"the ceiling on {name} cannot be judged: expected the figure in every session, found "
            f"none: {reason}; see what this machine can measure, or drop the ceiling"
        )
    return value


def _sentence(name: str, values: Sequence[float], ceiling: float, suffix: str = "") -> str:
    mean, unit = float(np.mean(values)), unit_of(name)
    side = "above" if mean > ceiling + ROUNDING * max(1.0, abs(ceiling)) else "within"
    return f"{name} is {_shown(mean, unit)}, {side} its ceiling of {_shown(ceiling, unit)}{suffix}."


def _shown(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 2**30:,.4g} GiB" if value >= 2**30 else f"{value / 2**20:,.4g} MiB"
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}" if unit else text
