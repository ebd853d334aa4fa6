"""Would the fast path decide what the mean rate leaves open? Recorded series and simulated worlds.

    python -m benchmarks.estimators DIR [--runs 20000]

DIR holds ``session-*.json``. The fast path is a low percentile of a session's step times under the
same rule as the mean. It is asked where the mean stays INCONCLUSIVE and is slower, and may only
make REGRESSED of it. So only that end is shared: either estimator has half the error probability
for REGRESSED, while PASS stays with the mean. "Whole α each" pays for nothing: it is the most that
the fast path could gain, and more false alarms than the rule allows itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p, sqrt
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.detection import ANCHOR_SESSIONS, APPENDED_JOBS, MOST_SESSIONS
from benchmarks.detection_worlds import WORLDS, Floats, Series, World, recorded, refreshed
from pytest_tokbudget.analysis.many_looks import REGRESSED, UNDECIDED, Ints, decide, learn

FAST_PERCENTILES = (10, 25, 50)
FIGURES = ("mean", *(f"p{percentile}" for percentile in FAST_PERCENTILES))
WORKLOADS = (("gpu_bound", 0.02), ("host_bound", 0.05), ("pipeline", 0.05))
CORRELATION = 0.9
"""Of the two figures between unchanged sessions, in the simulated worlds; recorded: 0.76 to 1."""


def figures(steps_ms: Floats) -> Floats:
    """Return the logarithms of ``FIGURES`` of ``steps_ms`` (..., steps): (4, ...)."""
    fast = np.percentile(steps_ms, FAST_PERCENTILES, axis=-1)
    return np.asarray(np.log(np.concatenate([steps_ms.mean(axis=-1)[None], fast])))


def sessions_drawn(
    rng: np.random.Generator, series: Sequence[Series], shape: tuple[int, int]
) -> Floats:
    """Return ``FIGURES`` of sessions drawn, (4, *shape), those of one half of a session together.

    As ``detection_worlds.resampled``: the half is one stretch of consecutive steps.
    """
    chosen, start = rng.integers(len(series), size=shape), rng.random(shape)
    x = np.empty((len(FIGURES), *shape))
    for index, one in enumerate(series):
        half = len(one.step_ms) // 2
        table = figures(np.lib.stride_tricks.sliding_window_view(one.step_ms, half))
        mine = chosen == index
        x[:, mine] = table[:, (start[mine] * table.shape[1]).astype(int)]
    return x


@dataclass(frozen=True)
class Drawn:
    """One figure of the sessions of N runs: anchors (N, 5), appended or none, new ones (N, 3)."""

    anchor: Floats
    appended: Floats | None
    new: Floats

    def outcomes(self, delta: float, share: float) -> Ints:
        """Return the outcomes (N,) by this figure alone."""
        return decide(learn(self.anchor, self.appended), self.new, delta, share)[0]


def with_fast(mean: Drawn, fast: Drawn, delta: float, share: float) -> Ints:
    """Return the outcomes (N,) where each of both figures may spend ``share`` of REGRESSED's α.

    The mean must lie beyond the tolerance, as for any REGRESSED.
    """
    alone = mean.outcomes(delta, 1.0)
    lost = (alone == REGRESSED) & (mean.outcomes(delta, share) != REGRESSED)
    split = np.where(lost, UNDECIDED, alone)
    slower = mean.new.mean(axis=1) - mean.anchor.mean(axis=1) > delta
    found = (split == UNDECIDED) & slower & (fast.outcomes(delta, share) == REGRESSED)
    return np.where(found, REGRESSED, split)


def open_and_red(outcomes: Ints) -> str:
    """Return the shares of INCONCLUSIVE and REGRESSED in percent."""
    return " / ".join(
        f"{100 * float((outcomes == code).mean()):.{digits}f}"
        for code, digits in ((UNDECIDED, 0), (REGRESSED, 2))
    )


def refreshed_by_mean(drawn: Floats, appended: Floats | None, new: Floats) -> list[Drawn]:
    """Return each figure of ``drawn`` (F, N, K + 2), ``appended`` and ``new`` (F, N, …).

    A refresh replaces slow sessions by the mean rate. The fast path is left those first drawn: a
    slow one among them makes it see less.
    """
    by_mean, stands = refreshed(drawn[0], ANCHOR_SESSIONS)
    anchors = [by_mean, *drawn[1:, :, :ANCHOR_SESSIONS]]
    return [
        Drawn(anchor[stands], None if appended is None else appended[at][stands], new[at][stands])
        for at, anchor in enumerate(anchors)
    ]


def judged(delta: float, mean: Drawn, fast: Sequence[Drawn]) -> list[str]:
    """Return INCONCLUSIVE / REGRESSED, %: the mean, with each of ``fast``, and with whole α."""
    return [
        open_and_red(mean.outcomes(delta, 1.0)),
        *(open_and_red(with_fast(mean, one, delta, 0.5)) for one in fast),
        open_and_red(with_fast(mean, fast[0], delta, 1.0)),
    ]


def in_recorded(rng: np.random.Generator, directory: Path, runs: int) -> Table:
    """Return the table of resampled recorded sessions."""
    table = Table(title="Recorded: INCONCLUSIVE / REGRESSED, %")
    halves = (f"with {name}, half α" for name in FIGURES[1:])
    for heading in ("sessions", "baseline", "mean", *halves, f"{FIGURES[1]}, whole α each"):
        table.add_column(heading)
    for workload, tolerance in WORKLOADS:
        series = recorded(directory, workload)
        unchanged = [one for one in series if one.slowdown == 0]
        for appended in (0, APPENDED_JOBS):
            for slowdown in sorted({one.slowdown for one in series}):
                new = [one for one in series if one.slowdown == slowdown]
                mean, *fast = refreshed_by_mean(
                    sessions_drawn(rng, unchanged, (runs, ANCHOR_SESSIONS + 2)),
                    sessions_drawn(rng, unchanged, (runs, appended)) if appended else None,
                    sessions_drawn(rng, new, (runs, MOST_SESSIONS)),
                )
                table.add_row(
                    f"{workload} +{100 * slowdown:g} %",
                    f"+{appended} jobs" if appended else "first",
                    *judged(-log1p(-tolerance), mean, fast),
                )
    return table


def two_figures(
    rng: np.random.Generator, world: World, runs: int, sessions: int, spread: float
) -> Floats:
    """Return the mean and a fast path of one job, (2, runs, sessions), by ``CORRELATION``."""
    mean, other = (world.job(rng, runs, sessions, spread) for _ in range(2))
    return np.stack([mean, CORRELATION * mean + sqrt(1 - CORRELATION**2) * other])


def in_worlds(rng: np.random.Generator, runs: int) -> Table:
    """Return the table of simulated worlds: a fast path no less noisy than the mean."""
    delta = -log1p(-0.03)
    table = Table(title=f"Simulated (correlation {CORRELATION:g}): INCONCLUSIVE / REGRESSED, %")
    ways = ("mean", "with fast, half α", "whole α each")
    for heading in ("sessions", "baseline", "spread", *ways, *(f"2δ: {one}" for one in ways)):
        table.add_column(heading)
    for world in WORLDS:
        for appended in (0, APPENDED_JOBS):
            for spread in (0.01, 0.03, 0.086):
                drawn = two_figures(rng, world, runs, ANCHOR_SESSIONS + 2, spread)
                jobs = [two_figures(rng, world, runs, 1, spread) for _ in range(appended)]
                since = np.concatenate(jobs, axis=2) if jobs else None
                new = two_figures(rng, world, runs, MOST_SESSIONS, spread)
                cells: list[str] = []
                for slower in (0.0, 2 * delta):
                    mean, fast = refreshed_by_mean(drawn, since, new + slower)
                    cells += judged(delta, mean, [fast])
                label = f"+{appended} jobs" if appended else "first"
                table.add_row(world.name, label, f"{100 * spread:g} %", *cells)
    return table


def of_sessions(directory: Path) -> Table:
    """Return how the figures of whole sessions vary, and move where they are truly slowed."""
    x = {
        workload: np.stack([figures(one.step_ms) for one in recorded(directory, workload)])
        for workload, _ in WORKLOADS
    }
    x["pipeline ÷ host_bound"] = x["pipeline"] - x["host_bound"]
    slowdown = np.array([one.slowdown for one in recorded(directory, WORKLOADS[0][0])])
    table = Table(title="Spread of unchanged sessions; slower by, where truly slowed, %")
    for heading in ("workload", "figure", "spread", "correlation with the mean"):
        table.add_column(heading)
    levels = [float(one) for one in np.unique(slowdown) if one > 0]
    for level in levels:
        table.add_column(f"at {100 * level:g} %")
    for workload, per_session in x.items():
        same = per_session[slowdown == 0]
        for at, name in enumerate(FIGURES):
            moved = (
                per_session[slowdown == level, at].mean() - same[:, at].mean() for level in levels
            )
            table.add_row(
                workload,
                name,
                f"{100 * same[:, at].std(ddof=1):.2f}",
                f"{np.corrcoef(same[:, 0], same[:, at])[0, 1]:.2f}",
                *(f"{100 * one:.1f}" for one in moved),
            )
    return table


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("series", type=Path, help="directory of recorded sessions")
    parser.add_argument("--runs", type=int, default=20_000)
    options = parser.parse_args()
    rng = np.random.default_rng(20250)
    console = Console(width=130)
    console.print(of_sessions(options.series))
    console.print(in_recorded(rng, options.series, options.runs))
    console.print(in_worlds(rng, options.runs))


if __name__ == "__main__":
    main()
