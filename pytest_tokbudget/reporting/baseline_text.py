"""A stored baseline for people: what it rests on, and how it came to be."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ..analysis.baseline_figures import BaselineFigures
from ..records.baseline import Baseline, RefreshEntry, StoredSession
from .canvas import drawn
from .figures import count, fitting, interval, milliseconds, percent, rate, signed

_LABEL_WIDTH = 11
_MOST_FRAMES = 3


def render_baseline(
    baseline: Baseline,
    figures: BaselineFigures,
    *,
    width: int = 80,
    color: bool = False,
    encoding: str = "utf-8",
) -> str:
    """Return ``baseline`` as text: no line wider than ``width``, no newline at the end."""
    heading = Text.assemble(
        ("BASELINE", "bold cyan"), "  ", fitting(baseline.workload.identity, encoding)
    )
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style="dim", width=_LABEL_WIDTH)
    grid.add_column(overflow="fold")
    for label, value in _rows(baseline, figures):
        grid.add_row(f"  {label}", Text(fitting(value, encoding)))
    log = Table.grid(padding=(0, 1, 0, 0))
    for style in ("dim", None):
        log.add_column(overflow="fold", style=style)
    for entry in reversed(baseline.log):
        when = f"  {entry.date} {(entry.commit or '')[:9]}".rstrip()
        log.add_row(when, Text(fitting(_entry(entry), encoding)))
    parts = (Group(heading, Text(""), grid), Text("  refreshes, newest first"), log)
    top, title, entries = (drawn(part, width=width, color=color) for part in parts)
    return f"{top}\n\n{title}\n{entries}"


def _rows(baseline: Baseline, figures: BaselineFigures) -> list[tuple[str, str]]:
    machine = baseline.machine_class
    rows = [
        ("tok/s", f"{rate(figures.tok_s)} ({baseline.token_kind} tokens)"),
        ("anchor", _sessions(baseline.anchor)),
        ("appended", _sessions(baseline.appended)),
        ("spread", _spread(figures)),
        ("machine", f"{machine.slug}: {_fields(machine.fields)}"),
        *_evidence(baseline),
    ]
    return [(label, value) for label, value in rows if value]


def _evidence(baseline: Baseline) -> list[tuple[str, str]]:
    """That there is evidence to compare with, from the last refresh, and what of."""
    found = baseline.reference
    if found is None:
        return []
    devices = " · ".join(
        f"{one.device} {milliseconds(one.step_ms)} a step" for one in found.ledgers
    )
    shown = found.hot_frames[:_MOST_FRAMES]
    known = all(one.thread_share is not None for one in shown)
    frames = " · ".join(
        f"{one.function} {percent(100 * ((one.thread_share if known else one.share) or 0.0))}"
        for one in shown
    )
    of = "its threads' time" if known else "all threads' samples"
    since = f"of {baseline.log[-1].date}" if baseline.log else "kept"
    return [
        ("evidence", f"{since}: {devices or 'no device has a ledger'}"),
        ("", f"hot frames, % of {of}: {frames}" if frames else ""),
    ]


def _spread(figures: BaselineFigures) -> str:
    rests_on = f"{figures.degrees:.3g} degrees of freedom, {count(figures.jobs, 'job')}"
    return f"{percent(figures.spread_pct)} between sessions ({rests_on})"


def _sessions(sessions: list[StoredSession]) -> str:
    if not sessions:
        return ""
    return " · ".join(rate(one.tok_s) for one in sessions) + " tok/s"


def _fields(fields: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())


def _entry(entry: RefreshEntry) -> str:
    moved = f"{rate(entry.new_tok_s)} tok/s"
    if entry.old_tok_s is not None:
        moved = f"{rate(entry.old_tok_s)} → {moved}"
    if entry.change_pct is not None:
        moved += f", {signed(entry.change_pct)}"
    if entry.change_ci_pct is not None:
        moved += f" ({interval(entry.change_ci_pct)})"
    return f"{moved}: {entry.reason}"
