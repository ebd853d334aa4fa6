"""From a verdict and its run records to the plain data of ``run.json``.

Every figure is derived from the raw marks of the sessions that counted. What is not known stays
``None``, and ``unavailable`` then holds the reason under the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, log
from typing import Any

import msgspec

from ..records.evidence import DeviceLedgerMs, Evidence
from ..records.machine import Accelerator
from ..records.result import DeviceResult, FrameResult, StepMs, TestResult
from ..records.run import RunRecord
from ..records.verdict import Outcome, Verdict
from ..records.workload import JsonValue
from .evidence_findings import (
    changed_counters,
    counter_findings,
    has_evidence,
    ledger_changes,
    rank_findings,
)
from .lost_evidence import NO_EVIDENCE
from .queue_use import queue_results
from .rates import Floats, pooled_step_times_ms, share_above_twice_median, step_percentiles

_NO_MARKS = "the sessions hold no marks of a counting worker"
_NO_REFERENCE = "no baseline with a device trace to compare with"

_NOT_MEASURED = {
    "threads": NO_EVIDENCE,
    "hot_frames": NO_EVIDENCE,
    "native_frames": NO_EVIDENCE,
    "native_sampling": NO_EVIDENCE,
    "counters": NO_EVIDENCE,
    "findings": NO_EVIDENCE,
    "changed_counters": _NO_REFERENCE,
    "ledger_changes": _NO_REFERENCE,
    "sentences": NO_EVIDENCE,
    "sampling": NO_EVIDENCE,
    "perturbation": NO_EVIDENCE,
    "ledger": NO_EVIDENCE,
}

_NO_COMPARISON = {
    Outcome.NO_BASELINE: "no baseline for this machine class",
    Outcome.WORKLOAD_CHANGED: "the baseline measured another workload",
    Outcome.NOT_JUDGED: "sessions that are only measured are compared with nothing",
    Outcome.RECORDED: "this run stored the baseline: there was none to compare with",
}

FALSE_ALARM_SHARE = 0.01
"""Runs of unchanged code that fail, per judged test, at most: the judge's "fewer than 1 in 100"."""

_JUDGED = ("PASS", "IMPROVED", "REGRESSED", "INCONCLUSIVE")


def test_result(
    verdict: Verdict,
    runs: Sequence[RunRecord],
    reference: Evidence | None = None,  # noqa: PT028 - it builds a TestResult, it is no test
) -> TestResult:
    """Return the result of a judged test; ``reference`` is the evidence of its baseline.

    ``runs`` are its sessions, those of ``verdict.sessions`` first and in the same order; further
    ones were measured after the verdict and are listed as set aside. A verdict that lists no
    sessions counts them all. Raises ``ValueError`` for fewer runs than the verdict rests on.
    """
    if not runs or len(runs) < len(verdict.sessions):
        raise ValueError(
            f"a verdict needs the sessions it was reached on: expected "
            f"{max(1, len(verdict.sessions))}, found {len(runs)}"
        )
    set_aside = [figure.set_aside for figure in verdict.sessions] or [""] * len(runs)
    set_aside += ["measured after the verdict"] * (len(runs) - len(set_aside))
    figures = _figures(runs, set_aside, reference)
    changed = {**(figures.get("changed_counters") or {}), **verdict.changed_counters}
    if changed:
        # After causes with milliseconds: what a changed counter costs is not known by itself.
        figures["findings"] = [*(figures.get("findings") or ()), *counter_findings(changed)]
    if verdict.tok_s is not None:
        figures["tok_s"] = verdict.tok_s
    return _with_reasons(
        TestResult(
            nodeid=runs[0].workload.nodeid,
            outcome=verdict.outcome.value,
            reason="\n".join(verdict.sentences),
            baseline_tok_s=verdict.baseline_tok_s,
            against=verdict.against,
            change_pct=verdict.change_pct,
            ci_pct=verdict.ci_pct,
            mde_pct=verdict.mde_pct,
            tolerance_pct=verdict.tolerance_pct,
            floor_tok_s=verdict.floor_tok_s,
            **{**figures, "changed_counters": changed or None},
        ),
        _why_no_comparison(verdict),
    )


def failed_result(
    nodeid: str, outcome: str, reason: str, runs: Sequence[RunRecord] = ()
) -> TestResult:
    """Return the result of a test that got to no verdict: ``outcome`` FAILED or SKIPPED.

    ``runs`` are the sessions that were complete before it ended, if any.
    """
    why = f"{outcome}: no verdict was reached"
    complete = [run for run in runs if _is_complete(run)]
    figures = _figures(complete, [""] * len(complete), None) if complete else {}
    result = TestResult(nodeid=nodeid, outcome=outcome, reason=reason, **figures)
    return _with_reasons(result, why)


def expected_false_alarms(results: Sequence[TestResult]) -> tuple[int, float]:
    """Return how many of ``results`` were judged against a baseline, and how many of those would
    fail by chance if no code had changed (each test has its own share; they are not corrected for
    one another)."""
    judged = sum(one.outcome in _JUDGED and one.change_pct is not None for one in results)
    return judged, judged * FALSE_ALARM_SHARE


def _is_complete(run: RunRecord) -> bool:
    """A failed test may leave a session without a rate; the judge refuses those itself."""
    return any(one.kind == "timing" and one.steps > 0 and one.tok_s > 0 for one in run.passes)


def _figures(
    runs: Sequence[RunRecord], set_aside: Sequence[str], reference: Evidence | None
) -> dict[str, Any]:
    """Return the fields of ``TestResult`` that need no verdict."""
    counted = [run for run, why in zip(runs, set_aside) if not why] or list(runs)
    first = counted[0]
    times = pooled_step_times_ms(series for run in counted for series in run.marks)
    unavailable = {name: why for run in runs for name, why in run.unavailable.items()}
    evidence = next((run.evidence for run in runs if run.evidence is not None), None)
    if evidence is not None:
        unavailable = {
            name: why for name, why in unavailable.items() if name not in _NOT_MEASURED
        } | evidence.unavailable
    return {
        "tok_s": exp(fsum(log(run.timing.tok_s) for run in counted) / len(counted)),
        "token_kind": first.budget.token_kind,
        "token_scope": first.workload.declaration.get("token_scope"),
        "sessions": [_session(run, why) for run, why in zip(runs, set_aside)],
        "steps": min(run.timing.steps for run in counted),
        "warmup_steps": max(run.warmup.steps for run in counted),
        "step_ms": _step_ms(times),
        "stalled_pct": 100 * share_above_twice_median(times) if times.size else None,
        "devices": _devices(first, evidence),
        "queues": queue_results(counted) or None,
        "unavailable": unavailable,
        **(_of_evidence(evidence, reference) if evidence is not None else {}),
    }


def _frames(evidence: Evidence) -> list[FrameResult]:
    if len(evidence.frames_ms) != len(evidence.hot_frames):
        return evidence.hot_frames
    return [
        msgspec.structs.replace(frame, ms_per_step=ms)
        for frame, ms in zip(evidence.hot_frames, evidence.frames_ms)
    ]


def _of_evidence(evidence: Evidence, reference: Evidence | None) -> dict[str, Any]:
    return {
        "threads": evidence.threads or None,
        "hot_frames": _frames(evidence) or None,
        "native_frames": evidence.native_frames or None,
        "counters": evidence.counters or None,
        "findings": rank_findings(evidence, reference),
        "changed_counters": changed_counters(evidence, reference) or None,
        "ledger_changes": ledger_changes(evidence, reference) or None,
        "sentences": evidence.sentences,
        "sampling": evidence.sampling or None,
        "native_sampling": evidence.native_sampling or None,
        "perturbation": evidence.perturbation or None,
    }


def _session(run: RunRecord, set_aside: str) -> dict[str, JsonValue]:
    timing, step_ms = run.timing, _step_ms(pooled_step_times_ms(run.marks))
    return {
        "tok_s": timing.tok_s,
        "steps": timing.steps,
        "seconds": (timing.end_ns - timing.start_ns - timing.held_ns) / 1e9,
        "tokens": timing.tokens,
        "warmup_steps": run.warmup.steps,
        "warmup_seconds": run.warmup.seconds,
        "steady": run.warmup.steady,
        "step_ms": msgspec.to_builtins(step_ms),
        "set_aside": set_aside or None,
    }


def _step_ms(times: Floats) -> StepMs | None:
    return step_percentiles(times) if times.size else None


def _devices(run: RunRecord, evidence: Evidence | None) -> list[DeviceResult] | None:
    ledgers = {one.device: one for one in evidence.ledgers} if evidence is not None else {}
    found = [_device(name, run.machine.accelerators, ledgers.get(name)) for name in run.devices]
    return found or None


def _device(
    name: str, accelerators: Sequence[Accelerator], ledger: DeviceLedgerMs | None
) -> DeviceResult:
    kind, _, index = name.partition(":")
    device = DeviceResult(uuid=None, name=name)
    # The machine record lists accelerators in CUDA's order; ``index`` is the driver's.
    if kind == "cuda" and int(index or 0) < len(accelerators):
        one = accelerators[int(index or 0)]
        device = DeviceResult(uuid=one.uuid, name=f"{name} {one.product}")
    if ledger is None:
        return device
    return msgspec.structs.replace(
        device,
        busy_ms_per_step=ledger.busy_ms,
        idle_pct=100 * max(ledger.step_ms - ledger.busy_ms, 0.0) / ledger.step_ms
        if ledger.step_ms > 0
        else None,
        ledger=dict(ledger.rows_ms),
    )


def _is_missing(result: TestResult, name: str) -> bool:
    if name == "ledger":
        return all(device.ledger is None for device in result.devices or ())
    return getattr(result, name, None) is None


def _why_no_comparison(verdict: Verdict) -> str:
    if verdict.tolerance_pct is None and verdict.outcome is not Outcome.NOT_JUDGED:
        return "tolerance=None: the author wants no comparison with a baseline"
    default = verdict.sentences[0] if verdict.sentences else f"{verdict.outcome.value}: no figure"
    return _NO_COMPARISON.get(verdict.outcome, default)


def _with_reasons(result: TestResult, no_comparison: str) -> TestResult:
    """Return ``result`` with a reason for every field that is ``None``."""
    reasons = {
        **_NOT_MEASURED,
        "step_ms": _NO_MARKS,
        "stalled_pct": _NO_MARKS,
        "queues": "no queue was given to recorder.queue(…)",
        "devices": "the workload named no device",
        "token_scope": "not declared",
        "floor_tok_s": "no floor was given",
        "tolerance_pct": no_comparison,
        "baseline_tok_s": no_comparison,
        "change_pct": no_comparison,
        "ci_pct": no_comparison,
        "mde_pct": no_comparison,
    }
    if result.sessions is None:
        measured = (
            "tok_s",
            "token_kind",
            "sessions",
            "steps",
            "warmup_steps",
            "step_ms",
            "stalled_pct",
        )
        none = "no session was complete"
        reasons |= dict.fromkeys((*measured, "queues", "devices", "token_scope"), none)
        reasons["floor_tok_s"] = no_comparison
    if result.sessions is not None and has_evidence(result):
        # An evidence pass was run: what it did not see it says itself.
        reasons |= dict.fromkeys(_NOT_MEASURED, "the evidence pass saw none")
        reasons["ledger_changes"] = _NO_REFERENCE
    missing = {name for name in reasons if _is_missing(result, name)}
    unavailable = {name: why for name, why in reasons.items() if name in missing}
    return msgspec.structs.replace(result, unavailable={**unavailable, **result.unavailable})
