"""Reads recorded evidence: raw profiler rows, their windows, unprofiled truth and stack samples.

A recording of tag T is three files: ``meta_T.json`` (names, threads, windows, unprofiled ms a step
of each variant), ``ev_T.npz`` (rows, see ``analysis/trace_rows.py``, whose group is the variant)
and, where stacks were sampled, ``spy_T.json`` (py-spy's ``chrometrace``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pytest_tokbudget.analysis.gap_classes import StackSamples
from pytest_tokbudget.analysis.host_factor import Canary
from pytest_tokbudget.analysis.replay_program import Frame, LabelKind, QueueOps
from pytest_tokbudget.analysis.timeline import BoolArray, IntArray, Timeline, Window
from pytest_tokbudget.analysis.trace_rows import KnownThread, timeline_from_rows
from pytest_tokbudget.records.evidence import Evidence

SLEEPERS = frozenset({"nap"})
"""Functions of the recorded programs that only sleep (the recordings hold no thread states)."""


@dataclass(frozen=True)
class Recording:
    """One traced variant. ``clean_ms`` are unprofiled ms a step, one value a repeat; ``cost_ms`` is
    what the fault costs, with its standard error, where it was measured in pairs, on the
    ``reference_ms`` of the blocks between. ``canary`` is the window's own, where one was recorded.
    ``sampled`` has the hot frames of stacks that were taken without a trace. ``injected_ms`` is
    the size of those faults that have a known one.
    """

    tag: str
    fault: str
    timeline: Timeline
    clean_ms: tuple[float, ...]
    samples: StackSamples | None
    cost_ms: tuple[float, float] | None = None
    reference_ms: float | None = None
    queues: QueueOps | None = None
    main_thread: int | None = None
    canary: Canary | None = None
    queue_waits_ms: dict[int, float] | None = None
    sampled: Evidence | None = None
    injected_ms: float | None = None

    @property
    def mean_ms(self) -> float:
        """Mean of the unprofiled repeats."""
        return float(np.mean(self.clean_ms))


def tags_in(folder: Path) -> list[str]:
    """Tags of the three-file recordings in a folder, sorted."""
    return sorted(one.stem.removeprefix("meta_") for one in folder.glob("meta_*.json"))


def load_recordings(folder: Path, tag: str) -> list[Recording]:
    """All variants of one recording, in the order in which they ran."""
    meta = json.loads((folder / f"meta_{tag}.json").read_text())
    rows = np.load(folder / f"ev_{tag}.npz")["rows"]
    by_id = {number: name for name, number in meta["names"].items()}
    names = tuple(by_id.get(one, "") for one in range(max(by_id) + 1))
    threads = [KnownThread(name, ident, native) for name, ident, native in meta["threads"]]
    timelines = {
        fault: timeline_from_rows(
            rows[rows[:, 0] == index], names, threads, Window(*meta["windows"][fault][:3])
        )
        for index, fault in enumerate(meta["faults"])
        if fault in meta["windows"]
    }
    spy = folder / f"spy_{tag}.json"
    samples = None
    if spy.exists():
        samples = read_samples(json.loads(spy.read_text()), meta, list(timelines.values()))
    return [
        Recording(tag, fault, timeline, tuple(meta["clean"][fault]), samples)
        for fault, timeline in timelines.items()
    ]


def read_samples(
    events: list[dict[str, Any]], meta: dict[str, Any], timelines: list[Timeline]
) -> StackSamples:
    """Leaf frames of the known threads, one sample each time py-spy saw a stack change.

    Its clock starts at an unknown moment after it was spawned. The beacon thread's log leaves a few
    milliseconds open; of these, the moment is taken at which stacks in the backward call best
    coincide with the calls of autograd's own thread.
    """
    known = {ident: at for at, (_, ident, _) in enumerate(meta["threads"])}
    changes = _stack_changes(events, set(known))
    frames: dict[Frame, int] = {}
    rows = [
        (known[ident], time_us * 1000, frames.setdefault(stack[-1], len(frames)))
        for ident, time_us, stack in changes
        if stack
    ]
    table = np.array(rows, np.int64).reshape(-1, 3)
    offsets = int(meta["tspawn"]) + _beacon_offsets_ns(changes, meta)
    backward = np.array([one.function == "_engine_run_backward" for one in frames], np.bool_)
    main = table[:, 0] == 0
    offset = _best_offset(table[main, 1], backward[table[main, 2]], offsets, timelines)
    return StackSamples(
        thread=table[:, 0].astype(np.int32),
        time_ns=table[:, 1] + offset,
        frame=table[:, 2].astype(np.int32),
        frames=tuple(frames),
        kinds=tuple(
            LabelKind.SLEEP if one.function in SLEEPERS else LabelKind.PYTHON for one in frames
        ),
    )


def _stack_changes(
    events: list[dict[str, Any]], idents: set[int]
) -> list[tuple[int, int, list[Frame]]]:
    """(thread, µs, stack) after every moment at which a thread's stack changed."""
    stacks: dict[int, list[Frame]] = {ident: [] for ident in idents}
    changes: list[tuple[int, int, list[Frame]]] = []
    mine = [one for one in events if one["tid"] in idents]
    for at, event in enumerate(mine):
        ident, stack = event["tid"], stacks[event["tid"]]
        if event["ph"] == "B":
            place = event["args"]
            stack.append(Frame(event["name"], place["filename"], place["line"]))
        elif stack:
            stack.pop()
        later = mine[at + 1] if at + 1 < len(mine) else None
        if later is None or later["tid"] != ident or later["ts"] != event["ts"]:
            changes.append((ident, int(event["ts"]), list(stack)))
    return changes


def _beacon_offsets_ns(
    changes: list[tuple[int, int, list[Frame]]], meta: dict[str, Any]
) -> IntArray:
    """Nanoseconds from spawning py-spy to its time 0: all at which its view of the beacon thread
    fits that thread's log best."""
    log: IntArray = np.array(meta["blog"], np.int64)
    seen = [
        (time_us * 1000, int(stack[-1].function == "beacon_b"))
        for _, time_us, stack in changes
        if stack and stack[-1].function in ("beacon_a", "beacon_b")
    ]
    if not seen or not len(log):
        return np.zeros(1, np.int64)
    times, state = np.array(seen, np.int64).T
    offsets = np.arange(0, 150_000_000, 100_000)
    fits = np.empty(len(offsets))
    for at, offset in enumerate(offsets):
        entry = np.searchsorted(log[:, 0], meta["tspawn"] + offset + times) - 1
        fits[at] = np.mean(log[np.maximum(entry, 0), 1] == state)
    best: IntArray = offsets[fits == fits.max()]
    return best


def _best_offset(
    times: IntArray, backward: BoolArray, offsets: IntArray, timelines: list[Timeline]
) -> int:
    """The offset at which samples in the backward call fall between calls of another thread."""
    agreeing = np.zeros(len(offsets))
    for timeline in timelines:
        calls, window = timeline.host_calls, timeline.window
        order = np.argsort(calls.start_ns)
        start, native = calls.start_ns[order], ~np.isin(calls.thread[order], _python(timeline))
        for at, offset in enumerate(offsets):
            moments = times + offset
            inside = (moments >= window.start_ns) & (moments < window.end_ns)
            last = np.searchsorted(start, moments[inside]) - 1
            agreeing[at] += np.sum(native[last] == backward[inside])
    best = offsets[agreeing == agreeing.max()]
    return int(best[len(best) // 2])


def _python(timeline: Timeline) -> list[int]:
    return [at for at, one in enumerate(timeline.threads) if one.python]
