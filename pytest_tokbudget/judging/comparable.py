"""Whether what was measured now is what the baseline measured."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.machine import Software
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.verdict import Outcome
from pytest_tokbudget.records.workload import JsonValue

from .ruling import Ruling

_ABSENT = object()


def workload_changed(run: RunRecord, baseline: Baseline) -> Ruling | None:
    """Return WORKLOAD_CHANGED with every field that differs, or ``None`` if none does."""
    differences = differing_fields(baseline.workload.declaration, run.workload.declaration)
    named = any(line.startswith("token_kind ") for line in differences)
    if baseline.token_kind != run.budget.token_kind and not named:
        differences.append(f"token_kind {baseline.token_kind} → {run.budget.token_kind}")
    if not differences:
        return None
    return Ruling(
        Outcome.WORKLOAD_CHANGED,
        (
            f"The workload is not the one its baseline measured: {'; '.join(differences)}.",
            'If that is intended, move the baseline: --tokbudget-refresh "why".',
        ),
    )


def differing_fields(
    old: Mapping[str, JsonValue], new: Mapping[str, JsonValue], prefix: str = ""
) -> list[str]:
    """Return ``"field old → new"`` for each leaf that differs, nested fields joined by dots."""
    lines: list[str] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            lines += differing_fields(before, after, f"{prefix}{key}.")
        elif not _same(before, after):
            lines.append(f"{prefix}{key} {_shown(before)} → {_shown(after)}")
    return lines


def _same(before: JsonValue, after: JsonValue) -> bool:
    """JSON keeps no difference between a tuple and a list, but one between true and 1."""
    if before is _ABSENT or after is _ABSENT:
        return before is after
    return json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)


def _shown(value: JsonValue) -> str:
    if value is _ABSENT:
        return "absent"
    return value if isinstance(value, str) and value else json.dumps(value, sort_keys=True)


def software_changed(run: RunRecord, baseline: Baseline) -> str | None:
    """Return the sentence that says which versions differ from the anchor's, if any does."""
    if not baseline.anchor:
        return None
    old, new = baseline.anchor[-1].software, run.machine.software
    changes = [
        f"{field} {getattr(old, field) or 'unknown'} → {getattr(new, field) or 'unknown'}"
        for field in Software.__struct_fields__
        if getattr(old, field) != getattr(new, field)
    ]
    return f"Software differs from the baseline's: {', '.join(changes)}." if changes else None
