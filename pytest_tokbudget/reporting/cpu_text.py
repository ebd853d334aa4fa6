"""CPU evidence for people: what limits the pipeline, hot frames, threads by CPU. 80 columns."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..analysis.cpu_summary import CpuSummary
from ..records.result import FrameResult, ThreadResult
from .canvas import drawn
from .figures import fitting, percent

MOST_FRAMES = 8
MOST_THREADS = 10
LEAST_THREAD_PCT = 0.05


def cpu_text(
    summary: CpuSummary, *, width: int = 80, color: bool = False, encoding: str = "utf-8"
) -> str:
    """Draw ``summary``; what is unavailable is said, never left out."""
    parts: list[RenderableType] = [_paragraph(one, "• ") for one in summary.sentences]
    if summary.hot_frames:
        parts += [Text(f"hot frames ({summary.sampling})", style="bold")]
        parts += [_frames(summary.hot_frames[:MOST_FRAMES])]
    if summary.threads:
        parts += [Text("threads by CPU (of one core)", style="bold"), _threads(summary.threads)]
    parts += [
        _paragraph(f"no {name}: {reason}", "• ") for name, reason in summary.unavailable.items()
    ]
    return fitting(drawn(Group(*parts), width=width, color=color), encoding)


def _paragraph(text: str, mark: str) -> RenderableType:
    table = Table.grid(padding=0)
    table.add_row(Text(mark), Text(text))
    return table


def _frames(frames: list[FrameResult]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=True, header_style="dim")
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("CPU s", justify="right", no_wrap=True)
    table.add_column("frame", ratio=1, overflow="fold")
    table.add_column("threads", overflow="fold", max_width=20)
    for one in frames:
        place = f"{one.function} ({one.file}:{one.line})"
        if one.caller:
            place += f"\n  from {one.caller}"
        table.add_row(
            percent(100 * one.share),
            "?" if one.cpu_s is None else f"{one.cpu_s:.2f}",
            Text(place),
            Text(_named(one.threads)),
        )
    return table


def _threads(threads: list[ThreadResult]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    busy = [one for one in threads if (one.cpu_pct or 0.0) >= LEAST_THREAD_PCT]
    for one in busy[:MOST_THREADS]:
        cpu = "?" if one.cpu_pct is None else percent(one.cpu_pct)
        table.add_row(cpu, Text(one.name), Text(one.role or ""))
    left = len(threads) - len(busy[:MOST_THREADS])
    if left:
        table.add_row("", Text(f"and {left} more"), "")
    return table


def _named(threads: list[str]) -> str:
    return ", ".join(threads[:2]) + (f" +{len(threads) - 2}" if len(threads) > 2 else "")
