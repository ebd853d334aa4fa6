"""The sessions of one workload over time: jobs, change points, and the creep of its anchor.

The unit is the job. Sessions of one invocation share its mood, so a point is the geometric mean of
a job's sessions, and a change is looked for between jobs only. Change points are those of the
piecewise constant median with the smallest absolute deviation and a penalty for each change (PELT,
Killick, Fearnhead & Eckley 2012, by the ``ruptures`` library; Truong, Oudre & Vayatis 2020). The
median, not the mean, because a slow host now and then is no change.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from ..errors import MissingLibraryError
from ..records.baseline import RefreshEntry, StoredSession
from ..records.history import SeenSession
from .spread import SMALLEST_SPREAD, slowness
from .stats import change_interval, percent_of_rate

FEWEST_JOBS = 3
"""Jobs on either side of a change: one or two slow ones are a slow host's."""

PENALTY = 2.5
"""Of one change, in units of noise · log n. Set by simulation (docs/statistics.md): at most 3 % of
series without a change get one, for 6 to 60 jobs and tails as heavy as Student's t with 3 degrees.
"""

MOST_JOBS = 200
"""The newest ones that are searched for changes; the search grows faster than their number."""

_NORMAL_MEDIAN = 0.6745
_KEPT_SQUARES = 0.9
_SOURCES = ("anchor", "appended", "run")


@dataclass(frozen=True)
class JobPoint:
    """One job: ``tok_s`` is the geometric mean of ``sessions`` sessions, ``when`` of the first.

    ``source`` is where it was found, ``"anchor"`` before ``"appended"`` before ``"run"``.
    """

    when: dt.datetime
    tok_s: float
    sessions: int
    source: str
    commit: str | None
    first: StoredSession


@dataclass(frozen=True)
class Change:
    """A change of level before job ``at``: the rate after it against the one before, in percent.

    ``ci_pct`` is the 99 % interval of jobs on either side up to the neighbouring changes; it takes
    the place as given. ``also`` names what else differs between the job before and ``at``.
    """

    at: int
    before_tok_s: float
    after_tok_s: float
    change_pct: float
    ci_pct: tuple[float, float]
    also: tuple[str, ...]


@dataclass(frozen=True)
class AnchorMove:
    """One refresh: ``step_pct`` against the anchor before, ``since_first_pct`` against the first.

    Both are ``None`` for a first anchor, which is also one whose workload or hardware changed: its
    rate is no longer comparable.
    """

    entry: RefreshEntry
    step_pct: float | None
    since_first_pct: float | None


@dataclass(frozen=True)
class Trend:
    """What ``trend_of`` finds; ``creep_pct`` is of the last anchor against its first."""

    jobs: list[JobPoint]
    changes: list[Change]
    moves: list[AnchorMove]
    creep_pct: float | None


def trend_of(sessions: Sequence[SeenSession], log: Sequence[RefreshEntry]) -> Trend:
    """Return the trend of ``sessions``, in the order they were measured, and of the refresh log.

    Raises MissingLibraryError without the ``ruptures`` library.
    """
    jobs = job_points(sessions)
    moves = anchor_moves(log)
    return Trend(
        jobs=jobs,
        changes=_changes(jobs),
        moves=moves,
        creep_pct=moves[-1].since_first_pct if moves else None,
    )


def job_points(sessions: Sequence[SeenSession]) -> list[JobPoint]:
    """Return one point a job, in the order they began; sessions of no known job stand alone."""
    jobs: dict[str, list[SeenSession]] = {}
    for index, one in enumerate(sessions):
        jobs.setdefault(one.session.job or f" {index}", []).append(one)
    points = [_point(members) for members in jobs.values()]
    return sorted(points, key=lambda point: point.when)


def _point(members: Sequence[SeenSession]) -> JobPoint:
    first = min((one.session for one in members), key=lambda session: session.unix_s)
    x = [slowness(one.session.tok_s) for one in members]
    return JobPoint(
        when=dt.datetime.fromtimestamp(first.unix_s, tz=dt.timezone.utc),
        tok_s=exp(-float(np.mean(x))),
        sessions=len(members),
        source=min((one.source for one in members), key=_SOURCES.index),
        commit=first.commit,
        first=first,
    )


def change_points(x: Sequence[float]) -> list[int]:
    """Return the indices at which the level of ``x`` (−log tok/s of jobs in order) changes.

    Fewer than ``2 * FEWEST_JOBS`` values cannot tell. Raises MissingLibraryError.
    """
    pelt = _pelt()
    skipped = max(0, len(x) - MOST_JOBS)
    searched = np.asarray(x[skipped:], dtype=np.float64)
    if len(searched) < 2 * FEWEST_JOBS:
        return []
    found = pelt(searched / _noise(searched), FEWEST_JOBS, PENALTY * log(len(searched)))
    return [skipped + at for at in found if at < len(searched)]


def _pelt() -> Callable[[np.ndarray[tuple[int], np.dtype[np.float64]], int, float], list[int]]:
    try:
        import ruptures
    except ImportError:
        raise MissingLibraryError(
            "change points need the ruptures library: pip install 'pytest-tokbudget[history]'"
        ) from None

    def pelt(
        signal: np.ndarray[tuple[int], np.dtype[np.float64]], smallest: int, penalty: float
    ) -> list[int]:
        search = ruptures.Pelt(model="l1", min_size=smallest, jump=1)
        return [int(at) for at in search.fit(signal.reshape(-1, 1)).predict(pen=penalty)]

    return pelt


def _noise(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the standard deviation about a level that may change now and then.

    From differences of neighbours, by two robust estimates of which the larger is taken: their
    median size, and their mean square without the largest tenth.
    """
    differences = np.abs(np.diff(x))
    kept = np.sort(differences**2)[: max(1, int(_KEPT_SQUARES * len(differences)))]
    by_median = float(np.median(differences)) / (_NORMAL_MEDIAN * sqrt(2))
    return max(by_median, sqrt(float(kept.mean()) / 2), SMALLEST_SPREAD)


def _changes(jobs: Sequence[JobPoint]) -> list[Change]:
    x = [slowness(job.tok_s) for job in jobs]
    places = change_points(x)
    ends = [0, *places, len(x)]
    return [
        _change(jobs, x[before:at], x[at:after], at)
        for before, at, after in zip(ends, places, ends[2:])
    ]


def _change(
    jobs: Sequence[JobPoint], old: Sequence[float], new: Sequence[float], at: int
) -> Change:
    change_pct, ci_pct = change_interval(old, new)
    return Change(
        at=at,
        before_tok_s=exp(-float(np.mean(old))),
        after_tok_s=exp(-float(np.mean(new))),
        change_pct=change_pct,
        ci_pct=ci_pct,
        also=tuple(_also(jobs[at - 1].first, jobs[at].first)),
    )


def _also(old: StoredSession, new: StoredSession) -> list[str]:
    """Return what else than the code is not as it was."""
    found = ["another host"] if old.host_hash != new.host_hash else []
    pairs = [
        (name, getattr(old.software, name), getattr(new.software, name))
        for name in ("torch", "cuda", "driver", "python", "os")
    ]
    pairs.append(("usable cores", old.usable_cores, new.usable_cores))
    return found + [
        f"{name} {then} → {now}"
        for name, then, now in pairs
        if then != now and None not in (then, now)
    ]


def anchor_moves(log: Sequence[RefreshEntry]) -> list[AnchorMove]:
    """Return each refresh of ``log`` against the anchor before it and against the first one."""
    moves: list[AnchorMove] = []
    first_tok_s = 0.0
    for entry in log:
        if entry.old_tok_s is None:
            first_tok_s = entry.new_tok_s
            moves.append(AnchorMove(entry, None, None))
            continue
        first_tok_s = first_tok_s or entry.old_tok_s
        moves.append(
            AnchorMove(
                entry,
                _percent(entry.old_tok_s, entry.new_tok_s),
                _percent(first_tok_s, entry.new_tok_s),
            )
        )
    return moves


def _percent(old_tok_s: float, new_tok_s: float) -> float:
    return percent_of_rate(slowness(new_tok_s) - slowness(old_tok_s))
