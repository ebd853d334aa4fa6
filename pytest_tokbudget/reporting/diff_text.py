"""Two pieces of evidence side by side, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..analysis.evidence_diff import DeviceChange, EvidenceDiff, FrameChange
from .canvas import drawn, unbroken
from .figures import fitting_evidence, percent
from .frame_text import place

MOST_FRAMES = 10


def render_diff(
    diff: EvidenceDiff,
    then: str,
    now: str,
    *,
    width: int = 80,
    color: bool = False,
    encoding: str = "utf-8",
) -> str:
    """Return ``diff`` as text: no line wider than ``width``, no newline at the end.

    ``then`` and ``now`` say what is compared.
    """
    parts: list[RenderableType] = [
        _grid([("then", then), ("now", now)], encoding),
        *(_table(one, encoding) for one in diff.devices),
    ]
    counters = [
        (name, f"{old:.6g} → {new:.6g} a step") for name, (old, new) in diff.counters.items()
    ]
    frames = [("", _frame(one)) for one in diff.frames[:MOST_FRAMES]]
    for title, rows in (("changed counters", counters), ("hot frames that grew", frames)):
        parts += [_lines([title, *_joined(rows)], encoding)] if rows else []
    if diff.lacking:
        parts.append(_lines(["not compared", *diff.lacking], encoding))
    elif not (diff.devices or counters or frames):
        parts.append(Text("no difference"))
    return "\n\n".join(drawn(one, width=width, color=color) for one in parts)


def _joined(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, text in rows:
        yield f"{name} {text}" if name else text


def _grid(rows: Sequence[tuple[str, str]], encoding: str) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, text in rows:
        grid.add_row(label, Text(fitting_evidence(text, encoding)))
    return grid


def _lines(lines: Sequence[str], encoding: str) -> Table:
    """The first line is the title of the others."""
    grid = Table.grid()
    grid.add_column(overflow="fold")
    for number, line in enumerate(lines):
        text = Text(unbroken(fitting_evidence(line, encoding)), "" if number else "bold")
        grid.add_row(Padding(text, (0, 0, 0, 2)) if number else text)
    return grid


def _table(device: DeviceChange, encoding: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    headings = (f"{device.device}, ms a step", "then", "now", "difference")
    table.add_row(*(Text(one, "bold") for one in headings))
    for row in (*device.rows, device.step):
        sign = "−" if round(row.change_ms, 2) < 0 else "+" if round(row.change_ms, 2) else ""
        cells = (
            f"  {row.name}",
            f"{row.then_ms:,.2f}",
            f"{row.now_ms:,.2f}",
            f"{sign}{abs(row.change_ms):,.2f}",
        )
        style = "bold" if row is device.step else ""
        table.add_row(*(Text(fitting_evidence(one, encoding), style) for one in cells))
    return table


def _frame(frame: FrameChange) -> str:
    then = "not among the hottest" if frame.then is None else _cost(frame.then, frame)
    return f"{frame.function} ({place(frame.file, None)}) {then} → {_cost(frame.now, frame)}"


def _cost(value: float, frame: FrameChange) -> str:
    return f"{value:.2f} ms" if frame.in_ms else f"{percent(100 * value)} of samples"
