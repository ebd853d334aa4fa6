"""The sessions of a workload over time, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..analysis.trend import FEWEST_JOBS, AnchorMove, Change, JobPoint, Trend
from ..records.history import WorkloadHistory
from .bars import scale_of
from .canvas import drawn, unbroken
from .figures import count, fitting, interval, rate, signed

MOST_JOBS = 40
"""Rows of the picture: the newest jobs."""

NARROWEST_BAR = 8
"""Columns; where less is left the commits are."""

MOST_PERCENT = 99_999
"""A larger change is told as larger than that: it is another unit, not another speed."""

_COLORS = {"anchor": "cyan", "appended": "green", "run": "default"}


def render_history(
    history: WorkloadHistory,
    trend: Trend,
    *,
    width: int = 80,
    color: bool = False,
    encoding: str = "utf-8",
) -> str:
    """Return ``history`` as text: no line wider than ``width``, no newline at the end."""
    parts: list[RenderableType] = [
        Text.assemble(("HISTORY", "bold cyan"), "  ", history.identity),
        _lines(_found(history, trend)),
    ]
    if trend.jobs:
        parts += [Text(""), _picture(trend, width)]
        parts += [Text(""), Text("changes of level", "bold"), _lines(_changes(trend))]
    if trend.moves:
        parts += [Text(""), Text("anchors, newest first", "bold"), _moves(trend.moves)]
        parts.append(_lines(_creep(trend)))
    text = "\n".join(drawn(part, width=width, color=color) for part in parts)
    return fitting(text, encoding)


def _lines(lines: Sequence[str]) -> Table:
    grid = Table.grid()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Padding(Text(unbroken(line)), (0, 0, 0, 2)))
    return grid


def _found(history: WorkloadHistory, trend: Trend) -> list[str]:
    where = f"{count(len(trend.jobs), 'job')} on {history.machine}"
    versions = count(history.versions, "committed version")
    first = f"{count(len(history.sessions), 'session')} in {where}; {versions} of the baseline"
    left_out = [
        f"{number} {why}"
        for number, why in (
            (history.unsteady, "never became steady"),
            (history.in_turn, "stepped in turn with another commit (A/B)"),
            (history.other_workload, "declared another workload"),
        )
        if number
    ]
    return [first, *([f"left out: {', '.join(left_out)}"] if left_out else [])]


def _picture(trend: Trend, width: int) -> Table:
    """One row a job: its rate against the first level, which is the zero line."""
    shown = trend.jobs[-MOST_JOBS:]
    skipped = len(trend.jobs) - len(shown)
    zero = trend.changes[0].before_tok_s if trend.changes else _middle(trend.jobs)
    percents = [100 * (job.tok_s / zero - 1) for job in shown]
    rows = [_cells(job, percent) for job, percent in zip(shown, percents)]
    heading = ["  date", "commit", "", "tok/s", f"% of {rate(zero)}"]
    if width - _taken(heading, rows) < NARROWEST_BAR:
        # The commit is the longest of what stands elsewhere, too.
        rows, heading = [[row[0], "", *row[2:]] for row in rows], [heading[0], "", *heading[2:]]
    if width - _taken(heading, rows) < NARROWEST_BAR:
        heading[4] = "%"
    scale = scale_of(percents, max(NARROWEST_BAR, width - _taken(heading, rows)))
    table = Table.grid(padding=(0, 1, 0, 0))
    for name in heading:
        right = name in heading[3:]
        table.add_column(justify="right" if right else "left", no_wrap=True)
    table.add_column(width=scale.width, no_wrap=True)
    starts = {change.at - skipped for change in trend.changes}
    table.add_row(*heading, "", style="dim")
    for index, (row, job, percent) in enumerate(zip(rows, shown, percents)):
        if index in starts:
            table.add_row("  change", "", "", "", "", "-" * scale.width, style="yellow")
        table.add_row(*row, scale.bar(percent, _COLORS[job.source]))
    return table


def _taken(heading: list[str], rows: list[list[str]]) -> int:
    """Columns that the cells take, with one between two of them."""
    return sum(max(map(len, column)) + 1 for column in zip(heading, *rows))


def _cells(job: JobPoint, percent: float) -> list[str]:
    commit = (job.commit or "")[:7] + ("+" if (job.commit or "").endswith("-dirty") else "")
    when = f"  {job.when:%Y-%m-%d %H:%M}"
    change = signed(percent) if percent < MOST_PERCENT else f"> {MOST_PERCENT:,} %"
    return [when, commit, f"{job.source} x{job.sessions}", rate(job.tok_s), change]


def _middle(jobs: Sequence[JobPoint]) -> float:
    ordered = sorted(job.tok_s for job in jobs)
    return ordered[len(ordered) // 2]


def _changes(trend: Trend) -> list[str]:
    if trend.changes:
        return [_change(one, trend.jobs[one.at]) for one in trend.changes]
    if len(trend.jobs) < 2 * FEWEST_JOBS:
        return [f"not looked for: {2 * FEWEST_JOBS} jobs are the fewest that can tell"]
    return [f"none found between {count(len(trend.jobs), 'job')}"]


def _change(change: Change, first: JobPoint) -> str:
    where = f"{first.when:%Y-%m-%d %H:%M}" + (f", {first.commit[:9]}" if first.commit else "")
    also = f"; also new then: {', '.join(change.also)}" if change.also else ""
    return (
        f"{signed(change.change_pct)} from {where} on "
        f"({rate(change.before_tok_s)} → {rate(change.after_tok_s)} tok/s, "
        f"99 % interval {interval(change.ci_pct)}){also}"
    )


def _moves(moves: Sequence[AnchorMove]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("  date", "tok/s", "step", "since first", "reason", style="dim")
    for move in reversed(moves):
        table.add_row(
            f"  {move.entry.date}",
            rate(move.entry.new_tok_s),
            "first" if move.step_pct is None else signed(move.step_pct),
            "" if move.since_first_pct is None else signed(move.since_first_pct),
            Text(move.entry.reason),
        )
    return table


def _creep(trend: Trend) -> list[str]:
    refreshes = sum(move.step_pct is not None for move in trend.moves)
    if trend.creep_pct is None or not refreshes:
        return ["the anchor has not moved since the first comparable one"]
    return [
        f"all refreshes together: {signed(trend.creep_pct)} against the first comparable anchor"
    ]
