from __future__ import annotations

import gc
import threading
import time

from pytest_tokbudget.analysis.causes import Cause
from pytest_tokbudget.analysis.timeline import ThreadInfo
from pytest_tokbudget.evidence.gc_pauses import GcPauses, GcWatch


def test_collections_are_heard_with_their_thread_and_generation() -> None:
    watch = GcWatch()
    before = time.time_ns()
    watch.start()
    gc.collect(0)
    gc.collect()
    pauses = watch.stop()
    gc.collect()
    assert pauses.generation[-1] == 2
    assert 0 in pauses.generation
    assert set(pauses.native_id) == {threading.get_native_id()}
    assert all(s <= e for s, e in zip(pauses.start_ns, pauses.end_ns))
    assert before <= pauses.start_ns[0] <= pauses.end_ns[-1] <= time.time_ns()
    assert len(pauses.start_ns) == len(pauses.generation) == len(pauses.native_id)


def test_counters_are_means_a_step() -> None:
    pauses = GcPauses([0, 5_000_000], [1_000_000, 9_000_000], [0, 2], [7, 7])
    assert pauses.counters_per_step(2) == {
        "gc_collections": 1.0,
        "gc_full_collections": 0.5,
        "gc_pause_ms": 2.5,
    }


def test_pauses_label_the_threads_of_a_trace() -> None:
    pauses = GcPauses([0, 10], [5, 20], [0, 2], [7, 99])
    labels = pauses.labels((ThreadInfo(1, "main"), ThreadInfo(7, "loader")))
    assert labels.thread.tolist() == [1]
    assert (labels.start_ns.tolist(), labels.end_ns.tolist()) == ([0], [5])
    assert labels.cause.tolist() == [Cause.GARBAGE_COLLECTION]
