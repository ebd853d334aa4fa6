"""The figures of ``detection.py`` as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

CAPTION = (
    "All in percent but looks (sessions used on unchanged code). "
    "false: REGRESSED on unchanged code; missed: PASS on code slower by 2δ; "
    "open: INCONCLUSIVE; caught: REGRESSED on code slower by 2δ."
)


@dataclass(frozen=True)
class Row:
    """Shares in percent, of runs on unchanged code (0), code slower by δ (1) and by 2δ (2)."""

    what: str
    spread_pct: float | None
    tolerance_pct: float
    baseline: str
    false_alarms: float
    undecided_0: float
    passed_1: float
    regressed_1: float
    missed_2: float
    undecided_2: float
    caught_2: float
    sessions: float


@dataclass(frozen=True)
class PeerRow:
    """Shares in percent: red on unchanged code, green on code 10 % slower (2 × 5 %)."""

    rule: str
    spread_pct: float
    correlation: float
    false_alarms: float
    missed_2: float


def table_of(title: str, rows: Sequence[Row]) -> Table:
    """Return the table of ``rows`` as a person reads it."""
    table = Table(title=title, caption=CAPTION)
    for heading in ("sessions", "baseline"):
        table.add_column(heading)
    for heading in (
        "spread",
        "tol.",
        "false",
        "missed",
        "open 0",
        "open 2δ",
        "caught",
        "red at δ",
        "looks",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.what,
            row.baseline,
            f"{row.spread_pct:.2f}",
            f"{row.tolerance_pct:g}",
            f"{row.false_alarms:.2f}",
            f"{row.missed_2:.2f}",
            f"{row.undecided_0:.0f}",
            f"{row.undecided_2:.0f}",
            f"{row.caught_2:.1f}",
            f"{row.regressed_1:.1f}",
            f"{row.sessions:.1f}",
        )
    return table


def peer_table(rows: Sequence[PeerRow]) -> Table:
    """Return the table of peers' rules."""
    table = Table(title="Peers' rules: one stored and one new session of 200 steps")
    table.add_column("rule")
    for heading in ("spread %", "step corr.", "false alarm %", "missed 2δ %"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.rule,
            f"{row.spread_pct:.2f}",
            f"{row.correlation:g}",
            f"{row.false_alarms:.2f}",
            f"{row.missed_2:.2f}",
        )
    return table
