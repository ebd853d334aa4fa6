"""Figures of a pass from raw marks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.analysis.rates import (
    pooled_step_times_ms,
    share_above_twice_median,
    step_percentiles,
    step_times_ms,
    timing_pass,
    tok_s,
    tokens_by_kind,
)
from pytest_tokbudget.errors import NothingMeasuredError
from pytest_tokbudget.records.marks import MarkSeries

MS = 1_000_000


def series(
    times_ms: list[int], tokens: list[int], window: tuple[int, int], **more: object
) -> MarkSeries:
    times = [each * MS for each in times_ms]
    start = times[window[0]] if window[0] >= 0 else 0
    fields: dict[str, object] = {
        "worker": "w",
        "counts": True,
        "times_ns": times,
        "tokens": {"real": tokens},
        "window": window,
        "window_ns": (start, times[window[1]]),
    }
    return MarkSeries(**{**fields, **more})  # type: ignore[arg-type]


def test_tokens_of_the_first_mark_belong_to_the_step_before_the_window() -> None:
    one = series([0, 10, 20, 30], [999, 5, 6, 7], (0, 2))
    assert tokens_by_kind([one]) == {"real": 11}
    assert tok_s([one], "real") == pytest.approx(11 / 0.020)


def test_a_window_may_begin_before_the_first_mark() -> None:
    one = series([10, 20], [5, 6], (-1, 1))
    assert tokens_by_kind([one]) == {"real": 11}
    assert step_times_ms(one).tolist() == [10.0, 10.0]


def test_rates_of_workers_add_over_their_own_windows() -> None:
    a = series([0, 10, 20], [1, 100, 100], (0, 2))
    b = series([5, 45], [1, 80], (0, 1), worker="b")
    timing = timing_pass([a, b], "real")
    assert timing.tok_s == pytest.approx(200 / 0.020 + 80 / 0.040)
    assert (timing.start_ns, timing.end_ns) == (0, 45 * MS)
    assert timing.steps == 3
    assert timing.tokens == {"real": 280}


def test_workers_that_do_not_count_are_left_out() -> None:
    a = series([0, 10], [1, 100], (0, 1))
    observed = series([0, 10], [7, 7], (0, 1), counts=False)
    assert tokens_by_kind([a, observed]) == {"real": 100}
    assert pooled_step_times_ms([a, observed]).tolist() == [10.0]


def test_the_final_synchronization_counts_in_the_rate_and_in_no_step() -> None:
    one = series([0, 10, 20], [1, 5, 5], (0, 2), window_ns=(0, 40 * MS))
    assert tok_s([one], "real") == pytest.approx(10 / 0.040)
    assert step_times_ms(one).tolist() == [10.0, 10.0]


def test_nothing_measured_is_an_error_and_no_zero() -> None:
    with pytest.raises(NothingMeasuredError, match="no step"):
        timing_pass([], "real")
    with pytest.raises(NothingMeasuredError, match="kinds seen: real"):
        tok_s([series([0, 10], [1, 5], (0, 1))], "loss")
    with pytest.raises(NothingMeasuredError, match="took no time"):
        tok_s([series([10, 10], [1, 5], (0, 1))], "real")
    with pytest.raises(NothingMeasuredError, match="percentiles"):
        step_percentiles(np.empty(0))


def test_percentiles_and_stall_share() -> None:
    steps = np.array([10.0] * 97 + [12.0, 15.0, 120.0])
    found = step_percentiles(steps)
    assert (found.p50, found.max) == (10.0, 120.0)
    assert found.p95 == pytest.approx(10.0)
    assert share_above_twice_median(steps) == pytest.approx(100.0 / steps.sum())
    assert share_above_twice_median(np.array([10.0, 19.0])) == 0.0


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 10**6)), min_size=2, max_size=40),
    st.data(),
)
def test_rate_equals_a_walk_over_the_marks(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    times, now = [], 0
    for gap, _ in steps:
        now += gap
        times.append(now)
    last = data.draw(st.integers(1, len(steps) - 1))
    first = data.draw(st.integers(0, last - 1))
    tokens = duration = 0
    for i, (gap, count) in enumerate(steps):
        if first < i <= last:
            tokens, duration = tokens + count, duration + gap
    one = series(times, [count for _, count in steps], (first, last))
    assert tok_s([one], "real") == pytest.approx(tokens / (duration / 1e3))
    assert step_times_ms(one).sum() == pytest.approx(duration)
