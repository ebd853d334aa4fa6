"""The example's regressions, told from evidence alone; ``benchmarks/dflash_story.py`` prints them.

``log_every`` and ``docids`` are not here: what an fsync or a loop of 1.4 ms a batch takes of a
session is a few samples, and on a fast disk or a busy machine fewer than can be promised. Nor is
``post=sync``: of which role limits, windows of 5 s leave about one in ten undecided.
"""

from __future__ import annotations

import pytest

from benchmarks.dflash_story import observe

pytestmark = pytest.mark.alone


def test_threads_that_spin_are_told_as_contention_for_the_gil() -> None:
    said = "\n".join(observe("simulated", "spin=2", 2.5).sentences)
    assert "GIL contention" in said
    assert "most CPU: spin (examples/dflash/disturbances.py:" in said


def test_a_heap_full_of_garbage_is_told_of_the_collector() -> None:
    said = "\n".join(observe("simulated", "gc=heavy", 2.5).sentences)
    assert "the garbage collector took" in said
