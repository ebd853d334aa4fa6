"""One test's demands: call over option over marker over ini, checked, in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from ..analysis.figures_by_name import unit_of
from ..analysis.quantities import parse_figure, parse_rate, parse_share
from ..errors import UsageError
from ..records.budget import Budget
from .settings import DEFAULT_SESSIONS, Settings, parse_count, parse_sessions

TOKEN_KINDS = ("real", "slots", "loss", "draft")
KEYWORDS = (
    "steps",
    "warmup",
    "tokens",
    "tolerance",
    "floor",
    "ceilings",
    "counters",
    "workload",
    "token_kind",
    "sessions",
)
"""What the marker and a call of the fixture understand (``sessions``: the marker alone)."""


@dataclass(frozen=True)
class Demand:
    """A budget with the author's own part of the workload's declaration."""

    budget: Budget
    workload: Mapping[str, Any]


def marker_keywords(item: pytest.Item) -> dict[str, Any]:
    """The merged keywords of every ``tokbudget`` marker of ``item``, the closest one first."""
    merged: dict[str, Any] = {}
    for mark in item.iter_markers("tokbudget"):
        where = f"{item.nodeid}: @pytest.mark.tokbudget"
        if mark.args:
            raise UsageError(f"{where} takes keywords only, not {mark.args[0]!r}")
        for key in mark.kwargs:
            if key not in KEYWORDS:
                raise UsageError(
                    f"{where}({key}=…): unknown keyword; known are {', '.join(KEYWORDS)}"
                )
        merged = {**mark.kwargs, **merged}
    return merged


def resolve(settings: Settings, given: Mapping[str, Any], origin: str) -> Demand:
    """Check merged marker and call keywords. ``origin`` names the test in errors."""
    values = dict(given)
    tolerance = _tolerance(values, settings, origin)
    floor = _floor(values, origin)
    ceilings = _ceilings(values.get("ceilings"), origin)
    if tolerance is None and floor is None and not ceilings:
        raise UsageError(
            f"{origin}: tolerance=None judges nothing without a floor or ceilings; give "
            'floor="14.5K tok/s"'
        )
    kind = values.get("token_kind", "real")
    if kind not in TOKEN_KINDS:
        raise UsageError(f"{origin}: token_kind={kind!r} is not one of {', '.join(TOKEN_KINDS)}")
    tokens = values.get("tokens")
    budget = Budget(
        steps=parse_count(values.get("steps", settings.steps), f"{origin}: steps"),
        warmup_steps=_warmup(values, settings, origin),
        tolerance=tolerance,
        floor_tok_s=floor,
        token_kind=kind,
        constant_tokens=None if tokens is None else parse_count(tokens, f"{origin}: tokens"),
        sessions=_sessions(values, settings, origin),
        ceilings=ceilings,
        counters=_counters(values, settings, tolerance, origin),
    )
    return Demand(budget, _workload(values, origin))


def _tolerance(values: Mapping[str, Any], settings: Settings, origin: str) -> float | None:
    if "tolerance" not in values:
        return settings.tolerance
    if values["tolerance"] is None:
        return None
    return _named(parse_share, values["tolerance"], f"{origin}: tolerance")


def _floor(values: Mapping[str, Any], origin: str) -> float | None:
    floor = values.get("floor")
    return None if floor is None else _named(parse_rate, floor, f"{origin}: floor")


def _counters(
    values: Mapping[str, Any], settings: Settings, tolerance: float | None, origin: str
) -> str:
    counters = values.get("counters", settings.counters)
    if counters not in ("fail", "show"):
        raise UsageError(f"{origin}: counters={counters!r} is not one of fail, show")
    if counters == "fail" and tolerance is None:
        raise UsageError(
            f'{origin}: counters="fail" compares with a baseline, and tolerance=None wants none; '
            'say counters="show"'
        )
    return str(counters)


def _ceilings(given: object, origin: str) -> dict[str, float]:
    """``ceilings={"step_ms.p95": "40 ms"}``: figures of run.json, each in its own unit."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f'{origin}: ceilings={given!r} is not a dict like {{"idle_pct": "10%"}}')
    try:
        units = {str(name): unit_of(str(name)) for name in given}
    except UsageError as error:
        raise UsageError(f"{origin}: ceilings: {error}") from None
    return {
        name: _named(partial(parse_figure, unit=unit), given[name], f"{origin}: {name}")
        for name, unit in units.items()
    }


def _named(parse: Any, value: object, origin: str) -> float:
    try:
        return float(parse(value))
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from None


def _warmup(values: Mapping[str, Any], settings: Settings, origin: str) -> int | None:
    warmup = values.get("warmup", settings.warmup_steps)
    return None if warmup is None else parse_count(warmup, f"{origin}: warmup", least=0)


def _sessions(values: Mapping[str, Any], settings: Settings, origin: str) -> tuple[int, int]:
    """Option over marker over ini over the default."""
    if settings.sessions_from_option and settings.sessions is not None:
        return settings.sessions
    if values.get("sessions") is not None:
        return parse_sessions(values["sessions"], f"{origin}: sessions")
    return settings.sessions or DEFAULT_SESSIONS


def _workload(values: Mapping[str, Any], origin: str) -> Mapping[str, Any]:
    """The author's ``workload={…}``: a dict with string keys of plain JSON data."""
    workload = values.get("workload")
    if workload is None:
        return {}
    if not isinstance(workload, Mapping):
        raise UsageError(f"{origin}: workload={workload!r} is not a dict of JSON data")
    for key, value in workload.items():
        if not isinstance(key, str) or not is_json(value):
            raise UsageError(
                f"{origin}: workload[{key!r}]={value!r} is not plain JSON data "
                "(str, int, float, bool, None, lists and dicts of these)"
            )
    return workload


def is_json(value: object) -> bool:
    """Whether ``value`` is plain JSON data that compares equal after a round trip."""
    if value is None or isinstance(value, (str, bool, int)):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(is_json(one) for one in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(one) for key, one in value.items())
    return False
