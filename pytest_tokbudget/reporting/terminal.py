"""The section of one test in a terminal or a log: grasped in five seconds, 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..analysis.results import FALSE_ALARM_SHARE, expected_false_alarms
from ..records.machine import MachineRecord
from ..records.result import QueueResult, StepMs, TestResult
from .canvas import drawn, unbroken
from .evidence_text import evidence_rows, lost_heading, lost_rows
from .figures import (
    count,
    fitting,
    fitting_evidence,
    interval,
    machine_line,
    milliseconds,
    percent,
    rate,
    signed,
    versions_line,
)
from .refresh_command import refresh_command

STYLES = {
    "PASS": "bold green",
    "IMPROVED": "bold green",
    "RECORDED": "bold cyan",
    "NOT_JUDGED": "bold cyan",
    "REGRESSED": "bold red",
    "FAILED": "bold red",
    "INCONCLUSIVE": "bold yellow",
    "UNFIT": "bold yellow",
    "SKIPPED": "yellow",
    "NO_BASELINE": "bold magenta",
    "WORKLOAD_CHANGED": "bold magenta",
}

_TO_REFRESH = {
    "NO_BASELINE": ("To store one:", "first baseline"),
    "WORKLOAD_CHANGED": ("To move the baseline:", "why the workload changed"),
    "IMPROVED": ("To move the baseline:", "why it is faster"),
}
"""Verdicts whose next step is a refresh: what for, and the reason to put into the command."""

_COMMAND = "pytest --tokbudget-refresh"
_LABEL_WIDTH = 11
_LEAST_STALLED_PCT = 0.5
"""Unchanged steps without stalls stay below a tenth of it."""
_NUMBER_WIDTH = 4

Row = tuple[str, str]


def render(
    result: TestResult,
    machine: MachineRecord | None,
    *,
    width: int = 80,
    color: bool = False,
    encoding: str = "utf-8",
) -> str:
    """Return the section of ``result``: no line wider than ``width``, no newline at the end.

    ANSI codes only with ``color``; characters that ``encoding`` lacks are replaced.
    """
    style = STYLES.get(result.outcome, "bold")
    heading = Text.assemble((result.outcome, style), "  ", fitting(result.nodeid, encoding))
    reason = Padding(Text(unbroken(fitting(_sentences(result), encoding))), (0, 0, 0, 2))
    parts = [drawn(Group(heading, reason), width=width, color=color)]
    lost = list(lost_rows(result))
    if lost:
        title = Text(f"  {lost_heading(result)}", "bold")
        grid = _grid(lost, style, encoding, label_width=_NUMBER_WIDTH)
        parts.append(drawn(Group(title, grid), width=width, color=color))
    rows = [*_rows(result), *evidence_rows(result)]
    if rows and machine is not None:
        rows += [("machine", machine_line(machine)), ("versions", versions_line(machine))]
    if rows:
        parts.append(drawn(_grid(rows, style, encoding), width=width, color=color))
    if result.outcome in _TO_REFRESH:
        parts.append(fitting(_to_refresh(result, width), encoding))
    return "\n\n".join(parts)


def _sentences(result: TestResult) -> str:
    """A sentence that holds the command gives way to the command itself, which is never wrapped."""
    if result.outcome not in _TO_REFRESH:
        return result.reason
    sentences = result.reason.split("\n")
    return "\n".join(one for one in sentences if _COMMAND not in one) or result.reason


def _grid(
    rows: Sequence[Row], style: str, encoding: str, *, label_width: int = _LABEL_WIDTH
) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="dim", width=label_width)
    table.add_column(overflow="fold")
    for label, value in rows:
        text = unbroken(fitting_evidence(value, encoding))
        shown = Text(text, style if label == "change" else "")
        table.add_row(f"  {label}", shown)
    return table


def _to_refresh(result: TestResult, width: int) -> str:
    intent, reason = _TO_REFRESH[result.outcome]
    return "\n".join([f"  {intent}", *refresh_command(result.nodeid, reason, width)])


def _rows(result: TestResult) -> Iterator[Row]:
    if result.tok_s is not None:
        yield "tok/s", _rates(result, result.tok_s)
    if result.change_pct is not None:
        yield "change", _change(result, result.change_pct)
    if result.tolerance_pct is not None:
        yield "tolerance", _tolerance(result, result.tolerance_pct)
    if result.floor_tok_s is not None:
        yield "floor", f"{rate(result.floor_tok_s)} tok/s"
    if result.step_ms is not None:
        yield "step", _step(result.step_ms, result.stalled_pct)
    if result.steps is not None:
        yield "measured", _measured(result, result.steps)
    if result.sessions:
        yield "session" if len(result.sessions) == 1 else "sessions", _sessions(result.sessions)
    for queue in result.queues or ():
        yield "queue", _queue(queue)


def _rates(result: TestResult, tok_s: float) -> str:
    kind = f" ({result.token_kind} tokens)" if result.token_kind else ""
    if result.baseline_tok_s is None:
        return f"{rate(tok_s)}{kind}"
    return f"{rate(tok_s)} now · {rate(result.baseline_tok_s)} {result.against or 'baseline'}{kind}"


def _change(result: TestResult, change_pct: float) -> str:
    if result.ci_pct is None:
        return signed(change_pct)
    return f"{signed(change_pct)} · 99 % interval {interval(result.ci_pct)}"


def _tolerance(result: TestResult, tolerance_pct: float) -> str:
    text = f"{tolerance_pct:.6g} %"
    if result.mde_pct is None:
        return text
    return f"{text} · smallest slow-down that shows {percent(result.mde_pct)}"


def _step(step: StepMs, stalled_pct: float | None) -> str:
    shown = (("p50", step.p50), ("p95", step.p95), ("max", step.max))
    text = " · ".join(f"{name} {milliseconds(value)}" for name, value in shown)
    if stalled_pct is None or stalled_pct < _LEAST_STALLED_PCT:
        return text
    return f"{text} · stalls {percent(stalled_pct)} of the time"


def _measured(result: TestResult, steps: int) -> str:
    warm_up = result.warmup_steps
    after = f" after {count(warm_up, 'warm-up step')}" if warm_up else " without warm-up"
    return f"{count(steps, 'step')} a session" + ("" if warm_up is None else after)


def _sessions(sessions: Sequence[dict[str, object]]) -> str:
    counted = [_rate_of(one) for one in sessions if not one.get("set_aside")]
    aside = [_rate_of(one) for one in sessions if one.get("set_aside")]
    parts = [" · ".join(counted) + " tok/s"] if counted else []
    return ", ".join([*parts, *([f"set aside: {' · '.join(aside)} tok/s"] if aside else [])])


def _rate_of(session: dict[str, object]) -> str:
    tok_s = session.get("tok_s")
    return rate(tok_s) if isinstance(tok_s, float | int) else "unknown"


def _queue(queue: QueueResult) -> str:
    parts = [
        f"put waits {_share(queue.put_blocked_pct)}",
        f"get waits {_share(queue.get_blocked_pct)}",
    ]
    if queue.mean_depth is not None:
        size = f" of {queue.capacity}" if queue.capacity else ""
        parts.append(f"depth {queue.mean_depth:.1f}{size}")
    if queue.low_water_dips:
        parts.append(f"{count(queue.low_water_dips, 'dip')} below {queue.low_water}")
    return f"{queue.name}: " + " · ".join(parts)


def _share(blocked_pct: float | None) -> str:
    return "unknown" if blocked_pct is None else percent(blocked_pct)


def summary_line(result: TestResult, *, encoding: str = "utf-8") -> str:
    """Return one line: verdict, tok/s, change, node id."""
    tok_s = "-" if result.tok_s is None else f"{rate(result.tok_s)} tok/s"
    change = "" if result.change_pct is None else signed(result.change_pct)
    return fitting(f"{result.outcome:<16} {tok_s:>16} {change:>8}  {result.nodeid}", encoding)


def family_line(results: Sequence[TestResult], *, encoding: str = "utf-8") -> str:
    """Return how many tests were judged and how many false alarms to expect; ``""`` for none."""
    judged, expected = expected_false_alarms(results)
    if not judged:
        return ""
    return fitting(
        f"{count(judged, 'test')} judged, at most {percent(100 * FALSE_ALARM_SHARE)} "
        f"false alarms each: at most {expected:.2g} to expect",
        encoding,
    )
