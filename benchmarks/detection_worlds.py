"""Sessions to judge: simulated worlds, and recorded series resampled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pytest_tokbudget.analysis.many_looks import slow

Floats = npt.NDArray[np.float64]
MOST_REPLACED = 2
SLOW_HOST_SHARE = 0.1


@dataclass(frozen=True)
class World:
    """How x = −log tok/s of unchanged sessions varies, in units of the spread unless said.

    ``heavy``: Student's t with 3 degrees, scaled to variance 1. ``jobs``: share of the variance
    that all sessions of one job have in common. ``slow_hosts`` and ``slow_absolute``: how much
    slower one session in ten is (relative to the spread; as a share). ``drift``: slower by this
    much with every further session of a job.
    """

    name: str
    heavy: bool = False
    jobs: float = 0.0
    slow_hosts: float = 0.0
    slow_absolute: float = 0.0
    drift: float = 0.0

    def job(self, rng: np.random.Generator, runs: int, sessions: int, spread: float) -> Floats:
        """Return x of one job of ``sessions`` sessions, for each of ``runs``."""
        x = np.sqrt(1 - self.jobs) * self._noise(rng, (runs, sessions))
        x = x + np.sqrt(self.jobs) * self._noise(rng, (runs, 1))
        x = spread * (x + self.drift * np.arange(sessions))
        on_slow_host = rng.random((runs, sessions)) < SLOW_HOST_SHARE
        return np.asarray(x + on_slow_host * (self.slow_hosts * spread + self.slow_absolute))

    def _noise(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        if self.heavy:
            return np.asarray(rng.standard_t(3, shape) / np.sqrt(3))
        return rng.standard_normal(shape)


WORLDS = (
    World("steady hosts"),
    World("slow host 10 s", slow_hosts=10.0),
    World("slow host 10 %", slow_absolute=0.1),
    World("half by job", jobs=0.5),
    World("heavy tails", heavy=True),
    World("drift 0.2 s", drift=0.2),
    World("all at once", heavy=True, jobs=0.5, slow_absolute=0.1),
    World("t3 and jobs", heavy=True, jobs=0.5),
)


def refreshed(drawn: Floats, sessions: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return anchors (N, K) of ``drawn`` (N, K + 2) as a refresh takes them, and which stand.

    Slow sessions are replaced by the next ones drawn; where more than two would have to be, the
    refresh is refused.
    """
    anchor = drawn[:, :sessions].copy()
    spent = np.zeros(len(drawn), np.int64)
    stands = np.ones(len(drawn), np.bool_)
    for _ in range(MOST_REPLACED + 1):
        flagged = slow(anchor)
        stands &= spent + flagged.sum(axis=1) <= MOST_REPLACED
        for run in np.flatnonzero(flagged.any(axis=1) & stands):
            for column in np.flatnonzero(flagged[run]):
                anchor[run, column] = drawn[run, sessions + spent[run]]
                spent[run] += 1
    return anchor, stands


@dataclass(frozen=True)
class Series:
    """Recorded step times of one session, in ms, warm-up cut."""

    session: int
    slowdown: float
    step_ms: Floats


def recorded(directory: Path, workload: str) -> list[Series]:
    """Read every ``session-*.json`` of ``directory``; the first quarter of the steps is cut."""
    found = []
    for path in sorted(directory.glob("session-*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        steps = np.diff(np.asarray(content[workload]["host_end_ms"], dtype=float))
        found.append(
            Series(content["session"], content["injected_slowdown"], steps[len(steps) // 4 :])
        )
    if not found:
        raise SystemExit(f"{directory}: expected session-*.json, found none")
    return found


def resampled(rng: np.random.Generator, series: Sequence[Series], shape: tuple[int, int]) -> Floats:
    """Return x of ``shape`` sessions drawn from ``series``, each over a random half of its steps.

    The half is one stretch, so the steps keep their autocorrelation; two draws of one session are
    then not the same number, which would feign a spread of zero.
    """
    chosen = rng.integers(len(series), size=shape)
    start = rng.random(shape)
    x = np.empty(shape)
    for index, one in enumerate(series):
        half = len(one.step_ms) // 2
        sums = np.concatenate([[0.0], np.cumsum(one.step_ms)])
        mine = chosen == index
        first = (start[mine] * (len(one.step_ms) - half + 1)).astype(int)
        x[mine] = np.log((sums[first + half] - sums[first]) / half)
    return x
