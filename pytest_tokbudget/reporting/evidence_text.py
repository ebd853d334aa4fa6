"""Evidence in the section of a test: where the milliseconds went, in a few lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..analysis.evidence_findings import has_evidence
from ..analysis.shares import printed_shares
from ..records.evidence import NATIVE_NOT_ASKED
from ..records.result import DeviceResult, Finding, TestResult
from .figures import milliseconds
from .frame_text import frame_rows, native_rows, place
from .threads_text import threads_text

PASSES = ("PASS", "IMPROVED", "RECORDED", "NOT_JUDGED")
MEASURED = ("RECORDED", "NOT_JUDGED")
"""Those of them that nobody waits for: there is room for the threads, on one line."""
MOST_FINDINGS = 5
MOST_ROWS = 4
MOST_CAUSES = 3
MOST_COUNTERS = 4
FEW_SENTENCES = 3
"""Of a test that passed; run.json has them all."""
LONGEST_THIRD = 250
"""Characters of the last of them."""
FEW_FRAMES, MANY_FRAMES = 3, 6
FEW_NATIVE, MANY_NATIVE = 2, 5
COUNTER = "counter: "
"""How the cause of a changed counter begins."""
LEAST_IDLE_MS = 0.01
_BUSY = ("compute", "exposed communication", "exposed copy", "exposed memset")

Row = tuple[str, str]


def lost_heading(result: TestResult) -> str:
    """What ``lost_rows`` are of."""
    findings = result.findings or ()
    what = "where the milliseconds went"
    if not result.ledger_changes and all(_is_counter(one) for one in findings):
        what = "what changed"
    elif not result.ledger_changes and all(one.delta_ms_per_step is None for one in findings):
        return f"{what} (a step)"
    return f"{what} (a step, against {result.against or 'the baseline'})"


def lost_rows(result: TestResult) -> Iterator[Row]:
    """What slowed a test that failed, ranked: causes, then changed counters, then each device."""
    if result.outcome in PASSES:
        return
    causes = [one for one in result.findings or () if not _is_counter(one)]
    shown = [*causes[:MOST_FINDINGS], *_untold_counters(result)]
    for number, finding in enumerate(shown, start=1):
        yield str(number), finding_text(finding)
    for device, rows_ms in (result.ledger_changes or {}).items():
        yield "", change_text(device, rows_ms)


def evidence_rows(result: TestResult) -> Iterator[Row]:
    """Rows of label and text, fewer where the test passed."""
    failed = result.outcome not in PASSES
    for device in result.devices or ():
        if device.ledger is not None:
            yield device.name.partition(" ")[0], device_text(device)
    if not failed:
        for finding in _untold_counters(result):
            yield "counter", finding_text(finding).removeprefix(COUNTER)
    for sentence in (result.sentences or []) if failed else _few_sentences(result):
        yield "host", sentence
    yield from frame_rows(result.hot_frames or [], MANY_FRAMES if failed else FEW_FRAMES)
    if result.threads and (failed or result.outcome in MEASURED):
        yield "threads", threads_text(result.threads, whole=failed)
    if result.hot_frames and result.sampling:
        yield "sampled", result.sampling
    yield from native_rows(result, MANY_NATIVE if failed else FEW_NATIVE)
    if result.perturbation:
        yield "probes", _perturbation(result.perturbation)
    yield from _missing(result, failed=failed)


def _few_sentences(result: TestResult) -> list[str]:
    """The foremost; the last of them only if it is short, as one on lines of code may not be."""
    few = (result.sentences or [])[:FEW_SENTENCES]
    return few if len(few) < FEW_SENTENCES or len(few[-1]) <= LONGEST_THIRD else few[:-1]


def finding_text(finding: Finding) -> str:
    """Return one finding: milliseconds a step, cause, where, then and now, samples.

    Of a changed counter: its name, then and now a step.
    """
    if _is_counter(finding):
        return f"{finding.cause} {_then_now(finding)} a step"
    delta, now, then = (
        finding.delta_ms_per_step,
        finding.ms_per_step,
        finding.baseline_ms_per_step,
    )
    about = "~" if finding.approximate else ""
    cost = f"{delta:+.3g} ms" if delta is not None else milliseconds(now or 0.0)
    text = f"{about}{cost.replace('-', '−')} {finding.cause}"
    if finding.file:
        text += f" ({place(finding.file, finding.line)})"
    whereabouts = [one for one in (finding.device, finding.thread) if one]
    if whereabouts:
        text += f", {' · '.join(whereabouts)}"
    if finding.summed_threads:
        text += f", sum of {finding.summed_threads} threads"
    if delta is not None and now is not None and then is not None:
        text += f"; {milliseconds(then)} → {milliseconds(now)}"
    if finding.samples:
        text += f"; n = {finding.samples}"
    return text


def change_text(device: str, rows_ms: dict[str, float]) -> str:
    """Return ``cuda:0 slower by 5.10 ms: allocator +3.70 · …``; its figures add up as printed."""
    total_ms = sum(rows_ms.values())
    digits = 2 if abs(total_ms) < 9.95 else 1
    ranked = sorted(rows_ms.items(), key=lambda one: -abs(one[1]))
    named = [(name.removeprefix("idle: "), round(ms, digits)) for name, ms in ranked[:MOST_ROWS]]
    shown = [(name, ms) for name, ms in named if ms]
    rest = round(round(total_ms, digits) - sum(ms for _, ms in shown), digits)
    if rest:
        shown.append(("rest", rest))
    text = f"{device} {'faster' if total_ms < 0 else 'slower'} by {abs(total_ms):.{digits}f} ms"
    parts = [f"{name} {'−' if ms < 0 else '+'}{abs(ms):.{digits}f}" for name, ms in shown]
    return f"{text}: {' · '.join(parts)}" if parts else text


def device_text(device: DeviceResult) -> str:
    """Return ``busy 95.1 % · idle 4.9 % of 15.8 ms: launch calls 0.31 ms · …``."""
    ledger = device.ledger or {}
    step_ms = sum(ledger.values())
    busy_ms = device.busy_ms_per_step or 0.0
    idle_ms = max(step_ms - busy_ms, 0.0)
    shares = printed_shares([round(busy_ms * 1e6), round(idle_ms * 1e6)])
    text = f"busy {shares[0]:.1f} % · idle {shares[1]:.1f} % of {milliseconds(step_ms)}"
    exposed = [
        f"{name} {milliseconds(ledger[name])}"
        for name in _BUSY[1:]
        if ledger.get(name, 0.0) >= LEAST_IDLE_MS
    ]
    idle = sorted(
        ((name, ms) for name, ms in ledger.items() if name not in _BUSY and ms >= LEAST_IDLE_MS),
        key=lambda one: -one[1],
    )
    causes = [f"{name.removeprefix('idle: ')} {milliseconds(ms)}" for name, ms in idle]
    shown = [*exposed, *causes[:MOST_CAUSES]]
    return f"{text}: {' · '.join(shown)}" if shown else text


def _is_counter(finding: Finding) -> bool:
    return finding.count_per_step is not None


def _then_now(finding: Finding) -> str:
    then, now = finding.baseline_count_per_step or 0.0, finding.count_per_step or 0.0
    return " → ".join(f"{one:,.0f}" if one.is_integer() else f"{one:,.6g}" for one in (then, now))


def _untold_counters(result: TestResult) -> list[Finding]:
    """The first changed counters whose change no sentence of the verdict has told."""
    counters = [one for one in result.findings or () if _is_counter(one)]
    untold = [
        one
        for one in counters
        if not re.search(
            rf"\b{one.cause.removeprefix(COUNTER).replace('_', ' ')} [\d,./]+ → ", result.reason
        )
    ]
    return untold[:MOST_COUNTERS]


def _perturbation(ratios: dict[str, float]) -> str:
    shown = [f"{name} {100 * ratio:.0f} %" for name, ratio in ratios.items()]
    return f"tok/s under them, of the timing pass: {' · '.join(shown)}"


def _missing(result: TestResult, *, failed: bool) -> Iterator[Row]:
    """What of the evidence shown could not be seen, each reason once."""
    reasons: dict[str, list[str]] = {}
    for name, why in _unseen(result, failed=failed):
        names = reasons.setdefault(why, [])
        if name not in names:
            names.append(name)
    for number, (reason, names) in enumerate(reasons.items()):
        yield ("not seen" if number == 0 else ""), f"{', '.join(names)}: {reason}"


def _unseen(result: TestResult, *, failed: bool) -> Iterator[tuple[str, str]]:
    why = result.unavailable
    if not has_evidence(result):
        # Without an evidence pass every field has the same reason.
        for field in ("evidence", "ledger"):
            if field in why:
                yield "evidence", why[field]
                return
        return
    for name in ("evidence", "ledger", "causes", "stacks", "thread clocks", "native_frames"):
        if why.get(name, NATIVE_NOT_ASKED) != NATIVE_NOT_ASKED:
            yield name.replace("_", " "), why[name]
    if "stacks" not in why and "hot_frames" in why:
        yield "hot frames", why["hot_frames"]
    traced = [one for one in result.devices or () if one.ledger is not None]
    for device in result.devices or ():
        if traced and device.ledger is None:
            name = f"ledger of {device.name.partition(' ')[0]}"
            yield name, why.get("ledger", "the trace has none of its work")
    if failed:
        if "thread clocks" not in why and "threads" in why:
            yield "threads", why["threads"]
        if traced and "ledger_changes" in why:
            yield "change of the ledger", why["ledger_changes"]
