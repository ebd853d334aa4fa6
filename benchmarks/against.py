"""How often an A/B errs: simulated pairs through the rule of ``analysis.pairs``.

    python benchmarks/against.py [--runs N] [--json FILE]

A pair's d is the slow-down, plus what differs from one fresh process to the next (2 % on a
launch-bound step), plus the noise that alternating blocks leave. Prints false alarms (REGRESSED on
unchanged code), misses (PASS or IMPROVED on code slower by twice the tolerance), what stays
INCONCLUSIVE, the pairs it took and the minutes of stepping they mean.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import log1p
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_tokbudget.analysis.many_pairs import PASSED, REGRESSED, UNDECIDED, Floats, decide
from pytest_tokbudget.analysis.pairs import MOST_PAIRS
from pytest_tokbudget.launching.pair import STEPPING_NS

STEPPING_S = STEPPING_NS / 1e9
"""Seconds that one pair steps."""

TOLERANCES = (0.02, 0.03, 0.05)
Draw = Callable[[np.random.Generator, int], Floats]


def normal(spread: float) -> Draw:
    """Independent normal differences."""
    return lambda rng, runs: spread * rng.standard_normal((runs, MOST_PAIRS))


def heavy(rng: np.random.Generator, runs: int) -> Floats:
    """Student's t with 3 degrees, 2 %."""
    return np.asarray(0.02 * rng.standard_t(3, (runs, MOST_PAIRS)) / np.sqrt(3))


def slow_process(rng: np.random.Generator, runs: int) -> Floats:
    """2 %, and either side of a pair is 10 % slower in one process of ten."""
    shape = (runs, MOST_PAIRS)
    slow = (rng.random(shape) < 0.1).astype(float) - (rng.random(shape) < 0.1)
    return np.asarray(0.02 * rng.standard_normal(shape) + 0.1 * slow)


def launch_order(rng: np.random.Generator, runs: int) -> Floats:
    """2 %, and whoever is launched first is 1 % slower; the order is swapped between pairs."""
    swapped = np.tile([0.01, -0.01], MOST_PAIRS // 2)
    return np.asarray(0.02 * rng.standard_normal((runs, MOST_PAIRS)) + swapped)


def two_modes(rng: np.random.Generator, runs: int) -> Floats:
    """Each process is of one of two speeds 2 % apart (memory layout, huge pages)."""
    shape = (runs, MOST_PAIRS)
    sides = rng.integers(0, 2, shape) - rng.integers(0, 2, shape)
    return np.asarray(0.02 * sides + 0.003 * rng.standard_normal(shape))


WORLDS: dict[str, Draw] = {
    "process 0.5 %": normal(0.005),
    "process 1 %": normal(0.01),
    "process 2 %": normal(0.02),
    "process 2 %, noise 2 %": normal(0.02 * 2**0.5),
    "process 4 %": normal(0.04),
    "heavy tails 2 %": heavy,
    "slow process 10 %": slow_process,
    "launch order 1 %": launch_order,
    "two modes 2 %": two_modes,
}


@dataclass(frozen=True)
class Row:
    """One world at one tolerance; shares in percent."""

    world: str
    tolerance_pct: float
    false_alarms: float
    undecided_0: float
    missed_2: float
    undecided_2: float
    pairs: float
    minutes: float


def simulated(rng: np.random.Generator, world: str, tolerance: float, runs: int) -> Row:
    """Judge ``runs`` A/Bs of unchanged code and as many slower by 2δ."""
    delta = -log1p(-tolerance)
    draw = WORLDS[world]
    unchanged, used = decide(draw(rng, runs), delta)
    slower, used_2 = decide(draw(rng, runs) + 2 * delta, delta)
    pairs = float(np.concatenate([used, used_2]).mean())
    return Row(
        world=world,
        tolerance_pct=100 * tolerance,
        false_alarms=100 * float((unchanged == REGRESSED).mean()),
        undecided_0=100 * float((unchanged == UNDECIDED).mean()),
        missed_2=100 * float((slower == PASSED).mean()),
        undecided_2=100 * float((slower == UNDECIDED).mean()),
        pairs=pairs,
        minutes=pairs * STEPPING_S / 60,
    )


def table_of(rows: list[Row]) -> Table:
    """Return the table that is printed."""
    table = Table(title="A/B by pairs: errors in % of all runs")
    for name in ("world", "tolerance", "false alarms", "undecided", "missed 2δ", "undecided"):
        table.add_column(name, justify="left" if name == "world" else "right")
    table.add_column("pairs", justify="right")
    table.add_column("stepping", justify="right")
    for row in rows:
        table.add_row(
            row.world,
            f"{row.tolerance_pct:.0f} %",
            f"{row.false_alarms:.2f}",
            f"{row.undecided_0:.1f}",
            f"{row.missed_2:.2f}",
            f"{row.undecided_2:.1f}",
            f"{row.pairs:.1f}",
            f"{row.minutes:.1f} min",
        )
    return table


def main() -> int:
    """Run every world at every tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(5)
    rows = [simulated(rng, world, tol, given.runs) for world in WORLDS for tol in TOLERANCES]
    Console().print(table_of(rows))
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
