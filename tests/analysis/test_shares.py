from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.analysis.shares import printed_shares


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=30))
def test_printed_shares_sum_to_one_hundred_and_stay_near_the_truth(parts: list[int]) -> None:
    shares = printed_shares(parts)
    if sum(parts) == 0:
        assert shares == [0.0] * len(parts)
        return
    assert sum(round(10 * share) for share in shares) == 1_000
    for part, share in zip(parts, shares):
        assert abs(share - 100 * part / sum(parts)) <= 0.1


def test_three_equal_parts() -> None:
    assert sorted(printed_shares([1, 1, 1])) == [33.3, 33.3, 33.4]
