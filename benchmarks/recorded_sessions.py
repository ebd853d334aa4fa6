"""Reads the files of ``record_evidence.py`` as recordings: with queue marks, the traced canary of
each window, and the truth of each fault with its error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks import evidence_files
from benchmarks.evidence_files import Evidence
from benchmarks.recordings import Recording, read_samples
from pytest_tokbudget.analysis.host_factor import Canary
from pytest_tokbudget.analysis.queue_marks import queue_ops, queue_waits_ms
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.timeline import Timeline, Window
from pytest_tokbudget.records.evidence import Evidence as Stacks
from pytest_tokbudget.records.marks import MarkSeries, QueueSeries

CAPACITY = {"hidden": 4, "batches": 4, "hidden-states": 4, "computed-0": 2, "computed-1": 2}
"""Capacities of the recorded programs' queues; others are taken as unbounded."""


def load_session(path: Path) -> list[Recording]:
    """All windows of one recorded file, in the order in which they ran."""
    evidence = evidence_files.read(path)
    meta = evidence.meta
    faults = [one for one in meta["faults"] if one in meta["windows"]]
    timelines = {fault: evidence.timeline(fault) for fault in faults}
    samples = None
    if evidence.spy:
        threads = [one[:3] for one in meta["threads"]]
        known = {"threads": threads, "blog": meta["blog"], "tspawn": meta["tspawn"]}
        samples = read_samples(evidence.spy, known, list(timelines.values()))
    return [
        Recording(
            tag=path.stem,
            fault=fault,
            timeline=timelines[fault],
            clean_ms=_unprofiled(meta, fault),
            samples=samples,
            cost_ms=_cost(meta, fault),
            reference_ms=meta["truth"].get(fault, {}).get("reference_ms"),
            queues=queue_ops(
                _queues(evidence),
                _marks(evidence),
                timelines[fault].threads,
                meta["windows"][fault]["unix_offset_ns"],
            ),
            main_thread=_counting_thread(evidence, fault, timelines[fault]),
            canary=_canary(meta, fault, timelines[fault]),
            queue_waits_ms=_queue_waits_ms(evidence, fault, timelines[fault]),
            sampled=_sampled(meta, fault),
            injected_ms=meta.get("injected_ms"),
        )
        for fault in faults
    ]


def _queue_waits_ms(evidence: Evidence, fault: str, timeline: Timeline) -> dict[int, float] | None:
    """Time in queue calls by thread in the timing pass of a fault, ms a step, if there was one."""
    window = evidence.meta.get("timing_pass", {}).get(fault)
    if window is None:
        return None
    offset = window["unix_offset_ns"]
    ends = (window["start_ns"] - offset, window["end_ns"] - offset)
    queues, marks = _queues(evidence), _marks(evidence)
    return queue_waits_ms(queues, marks, timeline.threads, ends, window["steps"])


def _unprofiled(meta: dict[str, Any], fault: str) -> tuple[float, ...]:
    """Step times (ms) of unprofiled blocks: with the fault on, or (``none``) of all with it off."""
    truths = meta["truth"].values() if fault == "none" else [meta["truth"][fault]]
    on = int(fault != "none")
    return tuple(ms for truth in truths for is_on, ms in truth["blocks"] if is_on == on)


def _sampled(meta: dict[str, Any], fault: str) -> Stacks | None:
    """The hot frames of a fault, if they were recorded, priced as the gate does: by their share of
    the sampled time in an unprofiled step."""
    found = meta.get("sampled", {}).get(fault)
    if found is None:
        return None
    scale = float(np.mean(_unprofiled(meta, fault))) / found["ms_per_step"]
    priced = found | {"frames_ms": [ms * scale for ms in found["frames_ms"]]}
    return msgspec.convert({name: priced[name] for name in priced if name != "ms_per_step"}, Stacks)


def _cost(meta: dict[str, Any], fault: str) -> tuple[float, float] | None:
    truth = meta["truth"].get(fault)
    return None if truth is None else (truth["cost_ms"], truth["error_ms"])


def _queues(evidence: Evidence) -> list[QueueSeries]:
    series = []
    for name, values in evidence.series.items():
        if not name.startswith("queue:"):
            continue
        _, queue, side, worker = name.split(":", 3)
        start, end, sequence, depth = (one.tolist() for one in values)
        series.append(
            QueueSeries(
                queue=queue,
                side=side,
                worker=worker,
                capacity=CAPACITY.get(queue),
                start_ns=start,
                end_ns=end,
                sequence=sequence,
                depth=depth,
            )
        )
    return series


def _marks(evidence: Evidence) -> list[MarkSeries]:
    """The marks of counting workers, and empty series of those that only called queues."""
    workers = {name.rpartition(":")[2] for name in evidence.series}
    return [
        MarkSeries(
            worker=worker,
            native_id=_native_id(evidence, worker),
            times_ns=evidence.series.get(f"marks:{worker}", np.zeros(0, np.int64)).tolist(),
        )
        for worker in sorted(workers)
    ]


def _native_id(evidence: Evidence, worker: str) -> int:
    """Of the thread of that name; the step loop's worker ``train`` runs in the main thread."""
    native_ids = {name: native_id for name, _, native_id, _, _ in evidence.meta["threads"]}
    return int(native_ids.get(worker) or native_ids["MainThread"])


def _counting_thread(evidence: Evidence, fault: str, timeline: Timeline) -> int | None:
    """The thread whose marks end the window's steps."""
    window = evidence.meta["windows"][fault]
    if not window["step_ends_ns"]:
        return None
    last = window["step_ends_ns"][-1] - window["unix_offset_ns"]
    counting = {one.native_id for one in _marks(evidence) if last in one.times_ns}
    found = (at for at, one in enumerate(timeline.threads) if one.native_id in counting)
    return next(found, None)


def _canary(meta: dict[str, Any], fault: str, timeline: Timeline) -> Canary | None:
    """The canary traced just before a window, against the same one untraced."""
    begin, end = meta["windows"][fault]["canary_ns"]
    untraced = [ms for truth in meta["truth"].values() for ms in truth["canary_ms"]]
    try:
        program = decode(replace(timeline, window=Window(begin, end, 1))).program
    except ValueError:
        return None
    return Canary(program, float(np.median(untraced)))
