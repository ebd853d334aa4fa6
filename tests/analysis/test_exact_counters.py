from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.analysis.exact_counters import (
    NOT_BY_STEP,
    exact_counters,
    pattern,
    per_step,
    with_zeros,
)
from pytest_tokbudget.records.counters import ExactCounters, TracedCounters
from pytest_tokbudget.records.marks import MarkSeries
from pytest_tokbudget.records.run import Pass, RunRecord
from tests.judging.cases import session, timing


def run(tokens: list[int], *, recompilations: int | None = 0, **more: Any) -> RunRecord:
    marks = MarkSeries(
        worker="step",
        counts=True,
        times_ns=list(range(len(tokens))),
        tokens={"real": tokens},
        window=(1, len(tokens) - 1),
        window_ns=(1, 9),
    )
    whole = msgspec.structs.replace(timing(1000), recompilations=recompilations)
    fields: dict[str, Any] = {"marks": [marks], "passes": [whole], **more}
    return session(1000, **fields)


def traced(by_step: dict[str, list[int]], steps: int) -> RunRecord:
    evidence = Pass(
        kind="evidence", instrument="cuda", start_ns=0, end_ns=1, steps=steps, tokens={}, tok_s=1
    )
    return run(
        [64] * 9,
        devices=["cuda:0"],
        passes=[*run([64] * 9).passes, evidence],
        traced=TracedCounters(instrument="kineto", by_step=by_step),
    )


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([7], 7),
        ([7, 7, 7, 7], 7),
        ([1, 1, 1, 4] * 3, (7, 4)),
        ([1, 4, 1, 1] * 3 + [1, 4], (7, 4)),
        ([1, 1, 1, 4] * 2, None),
        ([1, 2], None),
        ([5] * 20 + [6], None),
    ],
)
def test_a_counter_is_exact_in_every_step_or_in_a_repeating_pattern(
    counts: list[int], found: object
) -> None:
    assert pattern(counts) == found


def test_tokens_are_those_of_the_window_and_the_warm_up_does_not_count() -> None:
    assert exact_counters(run([1, 2, *[64] * 8])).counts == {"tokens": 64, "recompilations": 0}
    assert exact_counters(run([1, 2, *[64] * 8, 65])).varying == {"tokens": (64, 65)}


def test_recompilations_are_known_for_the_pass_as_a_whole() -> None:
    assert exact_counters(run([64] * 9, recompilations=20)).counts["recompilations"] == 2
    assert exact_counters(run([64] * 9, recompilations=3)).varying == {"recompilations": (0, 3)}
    assert "recompilations" not in exact_counters(run([64] * 9, recompilations=None)).counts


def test_a_trace_adds_its_exact_counters_and_says_what_has_no_size() -> None:
    found = exact_counters(
        traced({"kernel_launches": [3] * 6, "copies_htod": [1] * 6, "device_allocs": [1] * 6}, 6)
    )
    assert found.counts == {
        "tokens": 64,
        "recompilations": 0,
        "kernel_launches": 3,
        "copies_htod": 1,
    }
    assert found.varying == {"copy_bytes_htod": NOT_BY_STEP}
    assert (found.instrument, found.untraced) == ("kineto", "")
    assert per_step(found, "syncs_device") == 0
    assert per_step(found, "copy_bytes_htod") is None


def test_where_several_workers_mark_steps_no_launch_belongs_to_one() -> None:
    assert exact_counters(traced({"kernel_launches": [3] * 6}, 12)).varying == {
        "kernel_launches": NOT_BY_STEP
    }


def test_a_device_that_was_not_traced_is_said_and_a_cpu_needs_no_trace() -> None:
    assert exact_counters(run([64] * 9)).untraced == ""
    assert "no device trace" in exact_counters(run([64] * 9, devices=["cuda:0"])).untraced


def test_stored_sessions_name_the_same_counters_and_read_back() -> None:
    one = ExactCounters(counts={"memsets": 1, "syncs_event": (1, 4)}, instrument="kineto")
    other = ExactCounters(counts={"memsets": 1}, instrument="kineto")
    filled = with_zeros([one, other])
    assert filled == [one, msgspec.structs.replace(other, counts={"memsets": 1, "syncs_event": 0})]
    assert msgspec.json.decode(msgspec.json.encode(filled), type=list[ExactCounters]) == filled
    assert per_step(one, "syncs_event") == Fraction(1, 4)
