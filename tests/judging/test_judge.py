"""Every verdict of the throughput rule, and what asks for another session."""

from __future__ import annotations

from math import exp, log

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tokbudget.judging import judge
from pytest_tokbudget.judging.wording import must_show
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.machine import Software
from pytest_tokbudget.records.verdict import Outcome, Verdict

from .cases import baseline, budget, session, stored, workload

QUIET = (1000.0, 1001.0, 999.0, 1002.0, 998.0)
NOISY = (1000.0, 1020.0, 980.0, 1010.0, 990.0)


def judged(
    rates: tuple[float, ...],
    anchor: tuple[float, ...] = QUIET,
    tolerance: float = 0.03,
    most: int = 3,
) -> Verdict:
    runs = [session(tok_s) for tok_s in rates]
    return judge(runs, baseline(anchor), budget(tolerance), max_sessions=most)


def test_unchanged_code_passes_after_one_session() -> None:
    verdict = judged((996.0,))
    assert verdict.outcome is Outcome.PASS
    assert not verdict.wants_more
    assert verdict.sentences[0] == (
        "0.4 % slower than the baseline, tolerance 3 %: "
        "code 6 % slower would look this good in fewer than 1 run in 100."
    )


def test_faster_code_is_improved_and_should_be_made_the_baseline() -> None:
    verdict = judged((1060.0,))
    assert verdict.outcome is Outcome.IMPROVED
    assert "--tokbudget-refresh" in verdict.sentences[1]


def test_faster_code_within_the_tolerance_merely_passes() -> None:
    assert judged((1025.0,)).outcome is Outcome.PASS


def test_one_slow_session_only_asks_for_a_second() -> None:
    verdict = judged((900.0,))
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, True)
    assert "one slow session alone fails no test" in verdict.sentences[0]


def test_one_slow_session_alone_never_fails_even_if_no_other_is_allowed() -> None:
    verdict = judged((900.0,), most=1)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, False)
    assert "--tokbudget-sessions 1:2" in verdict.sentences[1]


def test_two_slow_sessions_are_regressed_and_a_third_confirms() -> None:
    second, third = judged((900.0, 902.0)), judged((900.0, 902.0, 899.0))
    assert (second.outcome, second.wants_more) == (Outcome.REGRESSED, True)
    assert (third.outcome, third.wants_more) == (Outcome.REGRESSED, False)
    assert third.sentences[0].startswith("10 % slower than the baseline, tolerance 3 %: unchanged")
    assert "Each of 3 sessions" in third.sentences[1]


def test_two_slow_sessions_fail_where_no_third_is_allowed() -> None:
    verdict = judged((900.0, 902.0), most=2)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.REGRESSED, False)


def test_a_third_session_as_fast_as_ever_takes_the_blame_away() -> None:
    assert judged((900.0, 902.0, 1000.0)).outcome is Outcome.INCONCLUSIVE


def test_noise_wider_than_the_tolerance_decides_nothing() -> None:
    verdict = judged((998.0, 1003.0, 1001.0), anchor=NOISY)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, False)
    assert "too uncertain for a tolerance of 3 %" in verdict.sentences[0]
    assert "More sessions cannot help" in verdict.sentences[1]
    assert "A/B" in verdict.sentences[1]


def test_undecided_says_how_many_sessions_would_do() -> None:
    anchor = (1000.0, 1012.0, 988.0, 1006.0, 994.0)
    verdict = judged((1010.0,), anchor=anchor, most=1)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    needed = int(verdict.sentences[1].split()[0])
    assert f"--tokbudget-sessions 1:{needed}" in verdict.sentences[1]
    enough = judged((1010.0,) * needed, anchor=anchor, most=needed)
    short = judged((1010.0,) * (needed - 1), anchor=anchor, most=needed - 1)
    assert (short.outcome, enough.outcome) == (Outcome.INCONCLUSIVE, Outcome.PASS)


def test_a_baseline_from_more_jobs_is_advised_only_where_it_would_help() -> None:
    anchor = (1000.0, 1016.0, 984.0, 1008.0, 992.0)
    assert "at least 5 jobs" in judged((990.0,), anchor, most=1).sentences[1]
    assert "at least 5 jobs" not in judged((1005.0,), (*NOISY[:4], 900.0)).sentences[1]


def test_a_settled_baseline_decides_where_a_first_one_cannot() -> None:
    anchor = (1000.0, 1012.0, 988.0, 1006.0, 994.0)
    since = [stored(1000 + 8 * (-1) ** job, job=f"job {job}") for job in range(10)]
    runs = [session(1000.0)]
    first = judge(runs, baseline(anchor), budget(), max_sessions=1)
    settled = judge(runs, baseline(anchor, since), budget(), max_sessions=1)
    assert (first.outcome, settled.outcome) == (Outcome.INCONCLUSIVE, Outcome.PASS)


def test_a_slow_host_is_set_aside_and_two_others_must_pass() -> None:
    second, third = judged((900.0, 1000.0)), judged((900.0, 1000.0, 1001.0))
    assert (second.outcome, second.wants_more) == (Outcome.INCONCLUSIVE, True)
    assert third.outcome is Outcome.PASS
    assert [bool(one.set_aside) for one in third.sessions] == [True, False, False]
    assert any(line.startswith("Session 1 was set aside (900 tok/s") for line in third.sentences)
    assert third.tok_s == pytest.approx(exp((log(1000) + log(1001)) / 2))


def test_an_unsteady_session_may_be_replaced_by_two_steady_ones() -> None:
    runs = [session(990.0, unsteady="step times drift"), session(1000.0), session(1001.0)]
    verdicts = [
        judge(runs[:number], baseline(QUIET), budget(), max_sessions=3) for number in (1, 2, 3)
    ]
    assert [one.outcome for one in verdicts] == [
        Outcome.INCONCLUSIVE,
        Outcome.INCONCLUSIVE,
        Outcome.PASS,
    ]
    assert [one.wants_more for one in verdicts] == [True, True, False]
    assert "Session 1 never became steady: step times drift." in verdicts[2].sentences
    assert verdicts[2].sessions[0].set_aside == "never became steady: step times drift"


@pytest.mark.parametrize(("rates", "most"), [((1000.0, 1000.0), 3), ((1000.0,), 2)])
def test_too_many_unsteady_sessions_decide_nothing(rates: tuple[float, ...], most: int) -> None:
    runs = [session(tok_s, unsteady="a change point") for tok_s in rates]
    verdict = judge(runs, baseline(QUIET), budget(), max_sessions=most)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, False)
    assert any("a change point" in line for line in verdict.sentences)


@pytest.mark.parametrize("anchor", [(), (1000.0,), (1000.0, 1001.0)])
def test_fewer_than_three_anchor_sessions_give_no_verdict(anchor: tuple[float, ...]) -> None:
    verdict = judged((1000.0,), anchor)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.INCONCLUSIVE, False)
    assert "3 are the fewest" in verdict.sentences[0]


def test_no_baseline_says_where_it_was_looked_for_and_what_to_type() -> None:
    missing = Unavailable("no baseline in baselines/h200", "--tokbudget-refresh 'first'")
    verdict = judge([session(1000.0)], missing, budget(), max_sessions=3)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.NO_BASELINE, False)
    assert verdict.sentences == [missing.reason, missing.remedy]


def test_a_tolerance_without_any_baseline_never_passes() -> None:
    verdict = judge([session(1000.0)], None, budget(), max_sessions=3)
    assert verdict.outcome is Outcome.NO_BASELINE


def test_another_workload_is_not_compared() -> None:
    old = baseline(QUIET, workload=workload(length=512, model={"layers": 8, "width": 64}))
    new = [session(500.0, workload=workload(length=1024, model={"layers": 8, "width": 32}, x=1))]
    verdict = judge(new, old, budget(), max_sessions=3)
    assert (verdict.outcome, verdict.wants_more) == (Outcome.WORKLOAD_CHANGED, False)
    assert "length 512 → 1024; model.width 64 → 32; x absent → 1." in verdict.sentences[0]


def test_another_token_kind_is_another_workload() -> None:
    verdict = judge(
        [session(1000.0)], baseline(QUIET, token_kind="slots"), budget(), max_sessions=3
    )
    assert verdict.outcome is Outcome.WORKLOAD_CHANGED
    assert "token_kind slots → real" in verdict.sentences[0]


def test_other_software_is_said_and_compared() -> None:
    old = baseline(QUIET)
    newer = Software(python="3.11", tokbudget="0.1.0", torch="2.12")
    changed = msgspec.structs.replace(session(1000.0).machine, software=newer)
    verdict = judge([session(1000.0, machine=changed)], old, budget(), max_sessions=3)
    assert verdict.outcome is Outcome.PASS
    assert verdict.sentences[-1] == "Software differs from the baseline's: torch 2.11 → 2.12."


def test_figures_mean_what_the_record_says() -> None:
    verdict = judged((950.0, 948.0, 952.0))
    assert verdict.change_pct == pytest.approx(-5.0, abs=0.01)
    assert verdict.ci_pct is not None
    low, high = verdict.ci_pct
    assert verdict.change_pct is not None
    assert low < verdict.change_pct < high < 0
    assert verdict.baseline_tok_s == pytest.approx(1000, rel=1e-4)
    assert verdict.tolerance_pct == pytest.approx(3.0)
    assert verdict.mde_pct == pytest.approx(3.0)
    assert [one.tok_s for one in verdict.sessions] == [950.0, 948.0, 952.0]


RATES = st.floats(min_value=-0.15, max_value=0.15).map(lambda value: 1000 * exp(value))
RANK = {
    Outcome.IMPROVED: 0,
    Outcome.PASS: 1,
    Outcome.INCONCLUSIVE: 2,
    Outcome.REGRESSED: 3,
}


@given(
    anchor=st.lists(RATES, min_size=3, max_size=6),
    new=st.lists(RATES, min_size=1, max_size=3),
    slower=st.floats(min_value=0, max_value=0.2),
    tolerance=st.sampled_from((0.01, 0.03, 0.1)),
)
@settings(max_examples=80, deadline=None)
def test_slower_code_never_gets_a_better_verdict(
    anchor: list[float], new: list[float], slower: float, tolerance: float
) -> None:
    def rank(factor: float) -> int:
        runs = [session(tok_s * factor) for tok_s in new]
        verdict = judge(runs, baseline(anchor), budget(tolerance), max_sessions=3)
        return RANK[verdict.outcome]

    assert rank(exp(-slower)) >= rank(1.0)


@given(
    anchor=st.lists(RATES, min_size=3, max_size=6),
    new=st.lists(RATES, min_size=2, max_size=4, unique=True),
    scale=st.floats(min_value=1e-3, max_value=1e6),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_order_and_unit_of_the_rates_do_not_matter(
    anchor: list[float], new: list[float], scale: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)

    def verdict(old: list[float], now: list[float]) -> Verdict:
        runs = [session(float(tok_s)) for tok_s in now]
        stored_before: Baseline = baseline([float(tok_s) for tok_s in old])
        return judge(runs, stored_before, budget(), max_sessions=4)

    one = verdict(anchor, new)
    other = verdict(
        [scale * rate for rate in rng.permutation(anchor)],
        [scale * rate for rate in rng.permutation(new)],
    )
    assert one.outcome is other.outcome
    assert one.change_pct == pytest.approx(other.change_pct, abs=1e-6)
    assert one.ci_pct == pytest.approx(other.ci_pct, rel=1e-6, abs=1e-6)
    assert one.mde_pct == pytest.approx(other.mde_pct, rel=1e-6)


@pytest.mark.parametrize(
    ("tolerance", "slower"), [(0.003, 0.006), (0.03, 0.06), (0.05, 0.1), (0.1, 0.19), (0.6, 0.84)]
)
def test_twice_the_tolerance_is_twice_in_log_rate(tolerance: float, slower: float) -> None:
    assert must_show(tolerance) == pytest.approx(slower)
