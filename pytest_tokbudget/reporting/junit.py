"""Properties of a test for JUnit XML, through pytest's ``user_properties``."""

from __future__ import annotations

from ..records.result import TestResult

_FIGURES = (
    "tok_s",
    "baseline_tok_s",
    "change_pct",
    "mde_pct",
    "tolerance_pct",
    "floor_tok_s",
    "steps",
    "warmup_steps",
)
_TEXTS = ("outcome", "token_kind", "token_scope")


def properties(result: TestResult) -> list[tuple[str, str]]:
    """Return ``(name, value)`` pairs, names as in run.json with the prefix ``tokbudget_``.

    Rates in tok/s, times in ms, changes in percent (negative is slower). What is not known is left
    out, for a property has no null.
    """
    pairs: list[tuple[str, str | float | None]] = [
        *((name, getattr(result, name)) for name in _TEXTS),
        ("reason", " ".join(result.reason.split("\n"))),
        *((name, getattr(result, name)) for name in _FIGURES),
    ]
    if result.ci_pct is not None:
        pairs += [("ci_low_pct", result.ci_pct[0]), ("ci_high_pct", result.ci_pct[1])]
    if result.step_ms is not None:
        step = result.step_ms
        pairs += [("step_ms_p50", step.p50), ("step_ms_p95", step.p95), ("step_ms_max", step.max)]
    if result.sessions is not None:
        pairs.append(("sessions", len(result.sessions)))
    return [(f"tokbudget_{name}", _text(value)) for name, value in pairs if value is not None]


def _text(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
