from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.analysis.intervals import NO_CODE, cut, label_stretch

INTERVALS = st.lists(st.tuples(st.integers(-5, 40), st.integers(-1, 12), st.integers(0, 3)))


@given(INTERVALS)
def test_each_nanosecond_has_the_lowest_code(intervals: list[tuple[int, int, int]]) -> None:
    start, length, code = (np.array(column, np.int64) for column in zip(*intervals or [(0, 0, 0)]))
    found = label_stretch(start, start + length, code, (0, 30))
    expected = [
        min((c for s, d, c in intervals if s <= at < s + d), default=NO_CODE) for at in range(30)
    ]
    assert [int(one) for one in np.repeat(found.code, found.end_ns - found.start_ns)] == expected
    assert (found.code[1:] != found.code[:-1]).all()


@given(INTERVALS, st.lists(st.integers(0, 30), min_size=2, max_size=9, unique=True))
def test_cut_is_the_intersection(intervals: list[tuple[int, int, int]], edges: list[int]) -> None:
    start, length, code = (np.array(column, np.int64) for column in zip(*intervals or [(0, 0, 0)]))
    by = label_stretch(start, start + length, code, (0, 30))
    ours = np.sort(np.array(edges, np.int64))[: len(edges) // 2 * 2].reshape(-1, 2)
    pieces = cut(ours[:, 0], ours[:, 1], by)
    found = {
        (int(left), at, int(by.code[right]))
        for left, right, s, e in zip(pieces.left, pieces.right, pieces.start_ns, pieces.end_ns)
        for at in range(int(s), int(e))
    }
    labels = np.repeat(by.code, by.end_ns - by.start_ns)
    assert found == {
        (one, at, int(labels[at])) for one, (s, e) in enumerate(ours) for at in range(s, e)
    }
