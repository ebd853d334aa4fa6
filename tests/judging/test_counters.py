"""Counters that gate: exact counts of new sessions against those of the baseline."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.analysis.exact_counters import exact_counters, with_zeros
from pytest_tokbudget.errors import MeasureError, UsageError
from pytest_tokbudget.judging import judge
from pytest_tokbudget.judging.counter_changes import PROOFS, false_alarm_bound
from pytest_tokbudget.judging.counters import judge_counters
from pytest_tokbudget.records.baseline import Baseline, StoredSession
from pytest_tokbudget.records.counters import ExactCounters, TracedCounters
from pytest_tokbudget.records.marks import MarkSeries
from pytest_tokbudget.records.run import Pass, RunRecord
from pytest_tokbudget.records.verdict import Outcome

from .cases import baseline, budget, session, stored, timing

STEPS = 12


def run(launches: int | list[int] = 9, tokens: int = 64, **more: Any) -> RunRecord:
    by_step = launches if isinstance(launches, list) else [launches] * STEPS
    marks = MarkSeries(
        worker="step",
        counts=True,
        times_ns=list(range(STEPS)),
        tokens={"real": [tokens] * STEPS},
        window=(-1, STEPS - 1),
        window_ns=(0, STEPS),
    )
    whole = msgspec.structs.replace(timing(1000), recompilations=more.pop("recompilations", 0))
    trace = Pass(
        kind="evidence", instrument="cuda", start_ns=0, end_ns=1, steps=STEPS, tokens={}, tok_s=1
    )
    fields: dict[str, Any] = {
        "devices": ["cuda:0"],
        "marks": [marks],
        "passes": [whole, trace],
        "traced": TracedCounters(instrument="kineto", by_step={"kernel_launches": by_step}),
    }
    return session(1000, **{**fields, **more})


def kept(runs: list[RunRecord]) -> list[StoredSession]:
    counters = with_zeros([exact_counters(one) for one in runs])
    return [msgspec.structs.replace(stored(1000), counters=one) for one in counters]


def of(*launches: int | list[int], appended: tuple[int, ...] = ()) -> Baseline:
    anchor = kept([run(one) for one in launches])
    since = kept([run(one) for one in appended])
    return msgspec.structs.replace(baseline([]), anchor=anchor, appended=since)


def ruled(base: Baseline, *runs: RunRecord, more: bool = True) -> tuple[str, bool]:
    found = judge_counters(runs, base, may_measure=more)
    return found.outcome.value, found.wants_more


def test_unchanged_code_fails_in_fewer_than_7_of_1000_runs() -> None:
    assert max(false_alarm_bound(k, r) for k, r in PROOFS) < 0.007
    assert false_alarm_bound(5, 1) == pytest.approx(0.067, abs=1e-3)
    for k, r in PROOFS:
        every_p = ((1 - p / 1000) ** k * (p / 1000) ** r for p in range(1001))
        assert max(every_p) <= false_alarm_bound(k, r) + 1e-12


@pytest.mark.parametrize(
    ("k", "r", "outcome", "more"),
    [
        (5, 1, "INCONCLUSIVE", True),
        (5, 2, "INCONCLUSIVE", True),
        (5, 3, "REGRESSED", False),
        (7, 2, "INCONCLUSIVE", True),
        (8, 2, "REGRESSED", False),
        (10, 2, "REGRESSED", False),
        (10, 1, "INCONCLUSIVE", True),
        (4, 3, "INCONCLUSIVE", False),
    ],
)
def test_more_launches_in_every_session_fail_once_proven(
    k: int, r: int, outcome: str, more: bool
) -> None:
    assert ruled(of(*[9] * k), *[run(12)] * r) == (outcome, more)


def test_random_sessions_against_a_plain_reading_of_the_rule() -> None:
    draw = random.Random(4)
    for _ in range(300):
        then = [draw.choice((9, 9, 9, 9, 10)) for _ in range(draw.randint(3, 11))]
        now = [draw.choice((8, 9, 12)) for _ in range(draw.randint(1, 3))]
        same, above = len(set(then)) == 1, all(one > then[0] for one in now)
        enough = any(len(then) >= k and len(now) >= r for k, r in PROOFS)
        expected = "PASS" if not (same and above) else "REGRESSED" if enough else "INCONCLUSIVE"
        assert ruled(of(*then), *map(run, now))[0] == expected


def test_the_sentence_names_counter_change_and_what_it_rests_on() -> None:
    found = judge_counters([run(1812)] * 3, of(*[1809] * 5), may_measure=True)
    assert found.sentences[0] == (
        "kernel launches 1,809 → 1,812 a step in every step of 3 sessions "
        "(baseline: 1,809 in 5 sessions)."
    )
    few = judge_counters([run(12)], of(9, 9, 9), may_measure=True)
    assert "--tokbudget-refresh" in few.sentences[1]
    assert "--tokbudget-sessions 5" in few.sentences[1]


def test_less_passes_and_asks_for_a_refresh() -> None:
    found = judge_counters([run(7)], of(*[9] * 5), may_measure=True)
    assert (found.outcome, found.wants_more) == (Outcome.PASS, False)
    assert found.sentences[0].startswith("Improved: kernel launches 9 → 7 a step")
    assert "refresh" in found.sentences[0]


@pytest.mark.parametrize("tokens", [32, 128])
def test_another_number_of_tokens_is_another_workload(tokens: int) -> None:
    found = judge_counters([run(tokens=tokens)] * 3, of(*[9] * 5), may_measure=True)
    assert found.outcome is Outcome.WORKLOAD_CHANGED
    assert "another workload" in found.sentences[1]
    assert ruled(of(*[9] * 5), run(tokens=tokens)) == ("INCONCLUSIVE", True)


def test_a_change_in_some_sessions_only_proves_nothing_and_is_said() -> None:
    found = judge_counters([run(12), run(9), run(12)], of(*[9] * 8), may_measure=True)
    assert found.outcome is Outcome.PASS
    assert "2 of 3 sessions" in found.sentences[0]


def test_a_pattern_is_held_by_its_sum_and_a_varying_reference_never_gates() -> None:
    every_fourth = [9, 9, 9, 13] * 3
    base = of(*[every_fourth] * 5)
    assert ruled(base, *[run([13, 9, 9, 9] * 3)] * 3) == ("PASS", False)
    assert ruled(base, *[run([9, 9, 9, 14] * 3)] * 3)[0] == "REGRESSED"
    irregular = judge_counters([run(99)] * 3, of(*[[9] * (STEPS - 1) + [10]] * 5), may_measure=True)
    assert irregular.outcome is Outcome.PASS
    assert "no gate: kernel_launches" in irregular.sentences[0]


def test_more_in_every_step_counts_though_not_the_same_in_each() -> None:
    above = run([12] * (STEPS - 1) + [15])
    assert ruled(of(*[9] * 5), *[above] * 3)[0] == "REGRESSED"
    assert ruled(of(*[9] * 5), *[run([9] * (STEPS - 1) + [15])] * 3)[0] == "PASS"


def test_appended_sessions_strengthen_the_anchor_and_never_speak_against_it() -> None:
    assert ruled(of(*[9] * 5, appended=(9, 9, 9)), *[run(12)] * 2)[0] == "REGRESSED"
    laundered = of(*[9] * 5, appended=(12, 12, 12))
    assert ruled(laundered, *[run(12)] * 3)[0] == "REGRESSED"


def edited(change: dict[str, Any] | None) -> Baseline:
    """A baseline of five sessions, one of which lost something."""
    base = of(*[9] * 5)
    first = base.anchor[0]
    assert first.counters is not None
    lost = None if change is None else msgspec.structs.replace(first.counters, **change)
    anchor = [msgspec.structs.replace(first, counters=lost), *base.anchor[1:]]
    return msgspec.structs.replace(base, anchor=anchor)


@pytest.mark.parametrize(
    "change",
    [
        None,
        {"counts": {}},
        {"counts": {"tokens": 64, "recompilations": 0}},
        {"instrument": ""},
        {"untraced": "CUPTI is busy"},
    ],
)
def test_a_baseline_that_lost_counters_fails_with_the_command(
    change: dict[str, Any] | None,
) -> None:
    with pytest.raises(MeasureError, match=r'pytest --tokbudget-refresh "why" tests/test_train'):
        judge_counters([run()], edited(change), may_measure=True)


def test_a_session_without_a_trace_or_with_another_one_fails_closed() -> None:
    gone = run(traced=TracedCounters(unavailable="CUPTI is busy"))
    with pytest.raises(MeasureError, match="session 2: CUPTI is busy"):
        judge_counters([run(), gone], of(*[9] * 5), may_measure=True)
    other = TracedCounters(instrument="kineto 2", by_step={"kernel_launches": [9] * STEPS})
    with pytest.raises(MeasureError, match="same instruments"):
        judge_counters([run(traced=other)], of(*[9] * 5), may_measure=True)


def test_the_judge_gates_only_where_asked_and_shows_the_change_anyway() -> None:
    base, now = of(*[9] * 5), [run(12)] * 3
    shown = judge(now, base, budget(), max_sessions=3)
    assert shown.outcome is Outcome.PASS
    assert shown.changed_counters == {"kernel_launches": (9.0, 12.0)}
    failed = judge(now, base, budget(counters="fail"), max_sessions=3)
    assert failed.outcome is Outcome.REGRESSED
    assert failed.sentences[0].startswith("kernel launches 9 → 12")
    assert judge([run()], base, budget(counters="fail"), max_sessions=3).outcome is Outcome.PASS


def test_a_compilation_in_every_step_is_no_mood_of_the_machine() -> None:
    compiling = run(recompilations=10, warmup=session(1, unsteady="code was compiled").warmup)
    found = judge([compiling] * 2, of(*[9] * 5), budget(counters="fail"), max_sessions=3)
    assert (found.outcome, found.wants_more) == (Outcome.INCONCLUSIVE, True)
    found = judge([compiling] * 3, of(*[9] * 5), budget(counters="fail"), max_sessions=3)
    assert found.outcome is Outcome.REGRESSED
    assert found.sentences[0].startswith("recompilations 0 → 1 a step")


def test_without_a_baseline_there_is_nothing_to_hold_counters_to() -> None:
    with pytest.raises(UsageError, match="tolerance=None"):
        judge([run()], None, budget(None, 1.0, counters="fail"), max_sessions=3)


def test_an_old_session_reads_without_counters() -> None:
    old = msgspec.to_builtins(stored(1000))
    del old["counters"]
    assert msgspec.convert(old, StoredSession).counters is None
    assert ExactCounters(counts={"tokens": 1}).untraced == ""
