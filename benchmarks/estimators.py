"""Would the fast path decide what the mean rate leaves open? On recorded series, resampled.

    python -m benchmarks.estimators DIR [--runs 20000]

DIR holds ``session-*.json``. The fast path is the 10th percentile of a session's step times under
the same rule as the mean, asked where the mean stays INCONCLUSIVE and is slower; it may only make
REGRESSED of it. It is given the whole error probability of the mean rather than half of it, so the
gain shown is the most there could be, and the false alarms are an upper bound too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import log1p
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.detection import ANCHOR_SESSIONS, APPENDED_JOBS, MOST_SESSIONS
from benchmarks.detection_worlds import Floats, Series, recorded, refreshed
from pytest_tokbudget.analysis.many_looks import REGRESSED, UNDECIDED, decide, learn

FAST_PERCENTILE = 10
WORKLOADS = (("gpu_bound", 0.02), ("host_bound", 0.05), ("pipeline", 0.05))


def sessions_drawn(
    rng: np.random.Generator, series: Sequence[Series], shape: tuple[int, int]
) -> Floats:
    """Return x of the mean and of the fast path, (2, *shape), each pair of one half of a session.

    As ``detection_worlds.resampled``: the half is one stretch of consecutive steps.
    """
    tables = [_halves(one.step_ms) for one in series]
    chosen, start = rng.integers(len(series), size=shape), rng.random(shape)
    x = np.empty((2, *shape))
    for index, table in enumerate(tables):
        mine = chosen == index
        x[:, mine] = table[:, (start[mine] * table.shape[1]).astype(int)]
    return x


def _halves(step_ms: Floats) -> Floats:
    """Both figures of every stretch that is half as long as the session, (2, stretches)."""
    stretches = np.lib.stride_tricks.sliding_window_view(step_ms, len(step_ms) // 2)
    fast = np.percentile(stretches, FAST_PERCENTILE, axis=1)
    return np.asarray(np.log(np.stack([stretches.mean(axis=1), fast])))


def judged(
    rng: np.random.Generator,
    unchanged: Sequence[Series],
    new: Sequence[Series],
    tolerance: float,
    appended: int,
    runs: int,
) -> list[float]:
    """Return INCONCLUSIVE and REGRESSED by the mean, then both with the fast path beside it, %."""
    delta = -log1p(-tolerance)
    drawn = sessions_drawn(rng, unchanged, (runs, ANCHOR_SESSIONS + 2))
    since = sessions_drawn(rng, unchanged, (runs, appended)) if appended else None
    seen = sessions_drawn(rng, new, (runs, MOST_SESSIONS))
    mean_anchor, stands = refreshed(drawn[0], ANCHOR_SESSIONS)
    # A refresh replaces sessions by their mean rate; the fast path is that of the same sessions.
    outcomes = []
    for which, anchor in enumerate((mean_anchor, drawn[1, :, :ANCHOR_SESSIONS])):
        known = learn(anchor[stands], None if since is None else since[which][stands])
        outcomes.append(decide(known, seen[which][stands], delta)[0])
    mean, fast = outcomes
    slower = seen[0][stands].mean(axis=1) > mean_anchor[stands].mean(axis=1)
    both = np.where((mean == UNDECIDED) & slower & (fast == REGRESSED), REGRESSED, mean)
    return [100 * float((one == code).mean()) for one in (mean, both) for code in _SHOWN]


_SHOWN = (UNDECIDED, REGRESSED)


def main() -> None:
    """Print a row for each workload, baseline and slow-down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("series", type=Path, help="directory of recorded sessions")
    parser.add_argument("--runs", type=int, default=20_000)
    options = parser.parse_args()
    rng = np.random.default_rng(20250)
    table = Table(title="INCONCLUSIVE and REGRESSED, %: the mean alone → with the fast path")
    for heading in ("sessions", "baseline", "spread, mean / fast", "INCONCLUSIVE", "REGRESSED"):
        table.add_column(heading)
    for workload, tolerance in WORKLOADS:
        series = recorded(options.series, workload)
        unchanged = [one for one in series if one.slowdown == 0]
        x = sessions_drawn(rng, unchanged, (options.runs, 1))
        spread = " / ".join(f"{100 * one.std():.2f} %" for one in x)
        for appended in (0, APPENDED_JOBS):
            for slowdown in sorted({one.slowdown for one in series}):
                new = [one for one in series if one.slowdown == slowdown]
                found = judged(rng, unchanged, new, tolerance, appended, options.runs)
                table.add_row(
                    f"{workload} +{100 * slowdown:g} %",
                    f"+{appended} jobs" if appended else "first",
                    spread,
                    f"{found[0]:.1f} → {found[2]:.1f}",
                    f"{found[1]:.2f} → {found[3]:.2f}",
                )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
