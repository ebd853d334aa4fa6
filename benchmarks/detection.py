"""How often the judge errs: simulated worlds, recorded series, and the rules of peers beside it.

    python benchmarks/detection.py [--quick] [--series DIR] [--json FILE]

Prints false alarms (REGRESSED on unchanged code), misses (PASS or IMPROVED on code slower by twice
the tolerance), how much stays INCONCLUSIVE, and the sessions it took.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from math import log1p
from pathlib import Path

import numpy as np
from rich.console import Console

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import detection_peers as peers
from benchmarks.detection_tables import PeerRow, Row, peer_table, table_of
from benchmarks.detection_worlds import WORLDS, World, recorded, refreshed, resampled
from pytest_tokbudget.analysis.many_looks import (
    IMPROVED,
    PASSED,
    REGRESSED,
    UNDECIDED,
    Ints,
    decide,
    learn,
)

SPREADS = (0.0013, 0.003, 0.01, 0.03, 0.086)
ANCHOR_SESSIONS = 5
MOST_SESSIONS = 3
APPENDED_JOBS = 10


def summarized(
    labels: tuple[str, float | None, float, str], outcomes: list[Ints], sessions: float
) -> Row:
    """Return the row of three arrays of outcomes: at slow-downs of 0, δ and 2δ."""

    def share(index: int, *codes: int) -> float:
        return 100 * float(np.isin(outcomes[index], codes).mean())

    return Row(
        *labels,
        false_alarms=share(0, REGRESSED),
        undecided_0=share(0, UNDECIDED),
        passed_1=share(1, PASSED, IMPROVED),
        regressed_1=share(1, REGRESSED),
        missed_2=share(2, PASSED, IMPROVED),
        undecided_2=share(2, UNDECIDED),
        caught_2=share(2, REGRESSED),
        sessions=sessions,
    )


def simulated(
    rng: np.random.Generator,
    world: World,
    spread: float,
    tolerance: float,
    appended: int,
    runs: int,
) -> Row:
    """Judge ``runs`` runs of ``world`` against a baseline with ``appended`` further jobs."""
    delta = -log1p(-tolerance)
    outcomes, used = [], []
    for slowdown in (0.0, delta, 2 * delta):
        drawn = world.job(rng, runs, ANCHOR_SESSIONS + 2, spread)
        anchor, stands = refreshed(drawn, ANCHOR_SESSIONS)
        jobs = [world.job(rng, runs, 1, spread) for _ in range(appended)]
        since = np.concatenate(jobs, axis=1)[stands] if jobs else None
        new = world.job(rng, runs, MOST_SESSIONS, spread)[stands] + slowdown
        outcome, sessions = decide(learn(anchor[stands], since), new, delta)
        outcomes.append(outcome)
        used.append(sessions)
    labels = (
        world.name,
        100 * spread,
        100 * tolerance,
        f"+{appended} jobs" if appended else "first",
    )
    return summarized(labels, outcomes, float(used[0].mean()))


def on_recorded(
    rng: np.random.Generator, directory: Path, workload: str, tolerance: float, runs: int
) -> list[Row]:
    """Judge resampled sessions: unchanged, shifted by δ and 2δ, and those truly slowed."""
    delta = -log1p(-tolerance)
    series = recorded(directory, workload)
    unchanged = [one for one in series if one.slowdown == 0]
    rows = []
    levels = sorted({one.slowdown for one in series if one.slowdown > 0})
    for appended in (0, APPENDED_JOBS):
        drawn = resampled(rng, unchanged, (runs, ANCHOR_SESSIONS + 2))
        anchor, stands = refreshed(drawn, ANCHOR_SESSIONS)
        since = resampled(rng, unchanged, (runs, appended))[stands] if appended else None
        known = learn(anchor[stands], since)
        new = resampled(rng, unchanged, (runs, MOST_SESSIONS))[stands]
        judged = [decide(known, new + shift, delta) for shift in (0.0, delta, 2 * delta)]
        spread = float(np.std(resampled(rng, unchanged, (runs, 1))))
        label = f"+{appended} jobs" if appended else "first"
        rows.append(
            summarized(
                (workload, 100 * spread, 100 * tolerance, label),
                [one[0] for one in judged],
                float(judged[0][1].mean()),
            )
        )
        for level in levels:
            slowed = [one for one in series if one.slowdown == level]
            true = resampled(rng, slowed, (runs, MOST_SESSIONS))[stands]
            outcome, used = decide(known, true, delta)
            outcomes = [judged[0][0], judged[1][0], outcome]
            name = f"{workload} +{100 * level:g} %"
            rows.append(
                summarized(
                    (name, 100 * spread, 100 * tolerance, label), outcomes, float(used.mean())
                )
            )
    return rows


def on_peers(
    rng: np.random.Generator, spread: float, correlation: float, runs: int
) -> list[PeerRow]:
    """Judge the same steps by the rules of peers."""
    old = peers.steps(rng, spread * rng.standard_normal(runs), correlation)
    new = peers.steps(rng, spread * rng.standard_normal(runs), correlation)
    slower = new / 0.95**2
    return [
        PeerRow(
            name,
            100 * spread,
            correlation,
            100 * float(rule(old, new).mean()),
            100 * float((~rule(old, slower)).mean()),
        )
        for name, rule in peers.RULES.items()
    ]


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--series", type=Path, help="directory of recorded sessions")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    parser.add_argument("--seed", type=int, default=20250)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    runs = 4_000 if options.quick else 40_000
    console = Console(width=112)
    worlds = [
        simulated(rng, world, spread, 0.03, appended, runs)
        for appended in (0, APPENDED_JOBS)
        for world in WORLDS
        for spread in SPREADS
    ]
    console.print(table_of(f"Simulated, {runs:,} runs each, K = 5, 1:3 sessions", worlds))
    peer_rows = [
        row
        for spread in SPREADS
        for correlation in (0.0, 0.6, 0.9)
        for row in on_peers(rng, spread, correlation, max(500, runs // 20))
    ]
    console.print(peer_table(peer_rows))
    real: list[Row] = []
    if options.series is not None:
        for workload, tolerance in (("gpu_bound", 0.02), ("host_bound", 0.05), ("pipeline", 0.05)):
            real += on_recorded(rng, options.series, workload, tolerance, runs)
        console.print(table_of("Recorded H200 sessions, resampled", real))
    if options.json is not None:
        figures = {
            name: [asdict(row) for row in rows]
            for name, rows in (("simulated", worlds), ("peers", peer_rows), ("recorded", real))
        }
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
