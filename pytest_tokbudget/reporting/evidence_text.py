"""Evidence in the section of a test: where the milliseconds went, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from ..records.result import DeviceResult, Finding, FrameResult, TestResult
from .figures import milliseconds, percent

PASSES = ("PASS", "IMPROVED", "RECORDED")
MOST_FINDINGS = 5
MOST_CAUSES = 3
MOST_COUNTERS = 4
FEW_FRAMES, MANY_FRAMES = 3, 6
MOST_THREADS = 4
LEAST_THREAD_PCT = 1.0
LEAST_IDLE_MS = 0.01
_BUSY = ("compute", "exposed communication", "exposed copy", "exposed memset")

Row = tuple[str, str]


def evidence_rows(result: TestResult) -> Iterator[Row]:
    """Rows of label and text: findings first where the test failed, then what is always shown."""
    failed = result.outcome not in PASSES
    if failed:
        for number, finding in enumerate((result.findings or [])[:MOST_FINDINGS]):
            yield ("where" if number == 0 else ""), finding_text(finding)
        for name, (old, new) in list((result.changed_counters or {}).items())[:MOST_COUNTERS]:
            yield "counter", f"{name} {old:.6g} → {new:.6g} a step"
    for device in result.devices or ():
        if device.ledger is not None:
            yield device.name.partition(" ")[0], device_text(device)
    for sentence in result.sentences or ():
        yield "host", sentence
    frames = (result.hot_frames or [])[: MANY_FRAMES if failed else FEW_FRAMES]
    for number, frame in enumerate(frames):
        yield ("frames" if number == 0 else ""), frame_text(frame)
    if failed and result.threads:
        yield "threads", _threads(result)
    if frames and result.sampling:
        yield "sampled", result.sampling
    if result.perturbation:
        yield "probes", _perturbation(result.perturbation)
    yield from _missing(result)


def finding_text(finding: Finding) -> str:
    """Return one finding: milliseconds, cause, where, now and then, samples."""
    delta, now, then = (
        finding.delta_ms_per_step,
        finding.ms_per_step,
        finding.baseline_ms_per_step,
    )
    about = "~" if finding.approximate else ""
    if delta is not None:
        text = f"{about}{delta:+.3g} ms a step: {finding.cause}"
    else:
        text = f"{about}{milliseconds(now or 0.0)} a step: {finding.cause}"
    if finding.file:
        text += f" ({finding.file}:{finding.line})"
    whereabouts = [one for one in (finding.device, finding.thread) if one]
    if whereabouts:
        text += f", {' · '.join(whereabouts)}"
    if delta is not None and now is not None and then is not None:
        text += f"; {milliseconds(then)} → {milliseconds(now)}"
    if finding.samples:
        text += f"; n = {finding.samples}"
    return text


def device_text(device: DeviceResult) -> str:
    """Return ``busy 95.1 % · idle 4.9 % of 15.8 ms: launch calls 0.31 ms · …``."""
    ledger = device.ledger or {}
    step_ms = sum(ledger.values())
    busy_ms = device.busy_ms_per_step or 0.0
    shares = rounded_shares([busy_ms, max(step_ms - busy_ms, 0.0)])
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


def frame_text(frame: FrameResult) -> str:
    """Return one hot frame: share, function, place, threads."""
    text = f"{percent(100 * frame.share)} {frame.function} ({frame.file}:{frame.line})"
    if frame.caller:
        text += f" from {frame.caller}"
    names = ", ".join(frame.threads[:2])
    more = f" +{len(frame.threads) - 2}" if len(frame.threads) > 2 else ""
    return f"{text} in {names}{more}" if names else text


def rounded_shares(values: list[float]) -> list[float]:
    """Return shares in per cent to a tenth that sum to 100.0 (largest remainder)."""
    total = sum(values)
    if total <= 0:
        return [0.0] * len(values)
    exact = [1000 * one / total for one in values]
    tenths = [int(one) for one in exact]
    order = sorted(range(len(values)), key=lambda at: tenths[at] - exact[at])
    for at in order[: 1000 - sum(tenths)]:
        tenths[at] += 1
    return [one / 10 for one in tenths]


def _threads(result: TestResult) -> str:
    busy = [one for one in result.threads or [] if (one.cpu_pct or 0.0) >= LEAST_THREAD_PCT]
    shown = [
        f"{one.name}{f' ({one.role})' if one.role else ''} {percent(one.cpu_pct or 0.0)}"
        for one in busy[:MOST_THREADS]
    ]
    more = len(busy) - len(shown)
    return " · ".join([*shown, *([f"{more} more"] if more else [])]) or "none used 1 % of a core"


def _perturbation(ratios: dict[str, float]) -> str:
    shown = [f"{name} {100 * ratio:.0f} %" for name, ratio in ratios.items()]
    return f"tok/s under them, of the timing pass: {' · '.join(shown)}"


def _missing(result: TestResult) -> Iterator[Row]:
    """What could not be seen, each reason once."""
    reasons: dict[str, list[str]] = {}
    for name in ("evidence", "ledger", "causes", "stacks", "thread clocks"):
        if name in result.unavailable:
            reasons.setdefault(result.unavailable[name], []).append(name)
    for number, (reason, names) in enumerate(reasons.items()):
        yield ("not seen" if number == 0 else ""), f"{', '.join(names)}: {reason}"
