from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.errors import RefreshRefusedError
from pytest_tokbudget.records.machine import Commit
from pytest_tokbudget.records.run import RunRecord, WarmUp
from pytest_tokbudget.storing.refresh import append_sessions, candidate, propose_anchor
from pytest_tokbudget.storing.refresh_log import RefreshTerms, against, mean_tok_s

from .builders import (
    H200,
    STEADY,
    baseline,
    entry,
    h200_class,
    machine,
    run,
    runs,
    sessions,
    workload,
)

TERMS = RefreshTerms(reason="fused AdamW", job="job-2", today="2026-01-03")


def _terms(**changes: Any) -> RefreshTerms:
    return RefreshTerms(reason="r", job="j", today="2026-01-03", **changes)


def _dirty(*paths: str) -> list[RunRecord]:
    commit = Commit(sha="c0ffee", dirty_paths=list(paths))
    return runs(STEADY, machine=machine(commit=commit))


def _untracked(path: str) -> list[RunRecord]:
    commit = Commit(sha="c0ffee", untracked_modules=[path])
    return runs(STEADY, machine=machine(commit=commit))


def _with_last(**changes: Any) -> list[RunRecord]:
    return [*runs(STEADY[:-1]), run(STEADY[-1], **changes)]


def test_a_clean_refresh_proposes_all_its_sessions() -> None:
    proposal = propose_anchor(runs(STEADY), old=None, terms=TERMS)

    assert [one.tok_s for one in proposal.sessions] == list(STEADY)
    assert (proposal.set_aside, proposal.replacements_needed, proposal.note) == ([], 0, "")
    first = proposal.sessions[0]
    assert (first.job, first.commit, first.seconds, first.unix_s) == (
        "job-2",
        "c0ffee",
        10.0,
        1_700_000_015,
    )
    assert proposal.entry.reason == "fused AdamW"
    assert proposal.entry.old_tok_s is None
    assert proposal.entry.new_tok_s == pytest.approx(1000.0, rel=1e-3)


def test_the_log_says_old_and_new_with_the_interval() -> None:
    faster = [rate * 1.05 for rate in STEADY]

    logged = propose_anchor(runs(faster), old=baseline(), terms=TERMS).entry

    assert logged.old_tok_s == pytest.approx(mean_tok_s(baseline().anchor))
    assert logged.change_pct == pytest.approx(5.0, abs=1e-6)
    assert logged.change_ci_pct is not None
    low, high = logged.change_ci_pct
    assert 4.0 < low < 5.0 < high < 6.0


def test_a_change_whose_interval_is_endless_has_none_in_the_log() -> None:
    one, other = sessions([1000.0]), sessions([1100.0])

    found = against(entry(), other, baseline(anchor=one))

    assert found.change_pct == pytest.approx(10.0)
    assert found.change_ci_pct is None


@pytest.mark.parametrize(
    "old",
    [
        baseline(workload=workload(declaration={"token_kind": "slots"})),
        baseline(machine_class=h200_class(accelerators=[H200, H200])),
    ],
)
def test_figures_of_another_workload_or_accelerator_are_not_compared(old: Any) -> None:
    logged = propose_anchor(runs(STEADY), old=old, terms=TERMS).entry

    assert (logged.old_tok_s, logged.change_pct, logged.change_ci_pct) == (None, None, None)


def test_a_slow_session_is_set_aside_and_asked_for_again() -> None:
    measured = runs([*STEADY[:2], 900.0, *STEADY[2:4]])

    first = propose_anchor(measured, old=None, terms=TERMS)
    again = propose_anchor([*measured, run(STEADY[4])], old=None, terms=TERMS)

    assert (first.set_aside, first.replacements_needed) == ([2], 1)
    assert (again.set_aside, again.replacements_needed) == ([2], 0)
    assert sorted(one.tok_s for one in again.sessions) == sorted(STEADY)


def test_two_slow_sessions_may_be_replaced_and_three_may_not() -> None:
    two = propose_anchor(runs([*STEADY, 300.0, 900.0]), old=None, terms=TERMS)

    assert (two.set_aside, two.replacements_needed) == ([5, 6], 0)
    with pytest.raises(RefreshRefusedError, match=r"3 of 8 sessions are slower.*900"):
        propose_anchor(runs([*STEADY, 20.0, 300.0, 900.0]), old=None, terms=TERMS)


@pytest.mark.parametrize(
    ("measured", "why"),
    [
        (runs(STEADY[:2]), "2 sessions measured, a baseline needs at least 3"),
        (
            _with_last(warmup=WarmUp(steps=9, seconds=1.0, steady=False, reason="it drifts")),
            "session 5 of 5: no steady state in 9 steps: it drifts",
        ),
        (_with_last(passes=run(0.0).passes), "session 5 of 5: no tokens of kind 'real'"),
        (_with_last(workload=workload("test_other")), "session 5 measured .*test_other"),
        (_with_last(workload=workload(declaration={"a": 1})), "session 5 declares {'a': 1}"),
        (
            _with_last(machine=machine(usable_cores=8)),
            "usable_cores 16 in session 1, 8 in session 5",
        ),
        (_with_last(machine=machine(commit=Commit(sha="beef"))), "moved from c0ffee to beef"),
        (runs([1000.0, 900.0, 1100.0, 950.0, 1050.0]), "too noisy"),
    ],
)
def test_what_must_not_become_a_baseline_is_refused(measured: list[RunRecord], why: str) -> None:
    with pytest.raises(RefreshRefusedError, match=why):
        propose_anchor(measured, old=None, terms=TERMS)


def test_a_noisy_workload_is_recorded_by_an_author_who_tolerates_it() -> None:
    measured = runs([1000.0, 800.0, 1200.0, 900.0, 1100.0], tolerance=0.3)

    assert len(propose_anchor(measured, old=None, terms=TERMS).sessions) == 5


def test_uncommitted_changes_are_refused_by_name() -> None:
    with pytest.raises(
        RefreshRefusedError, match=r"changes in src/a\.py, src/b\.py: .*allow-dirty"
    ):
        propose_anchor(_dirty("src/b.py", "src/a.py"), old=None, terms=TERMS)

    many = [f"f{number}.py" for number in range(9)]
    with pytest.raises(RefreshRefusedError, match=r"f4\.py and 4 more"):
        propose_anchor(_dirty(*many), old=None, terms=TERMS)


def test_imported_code_that_git_does_not_track_is_refused_by_name() -> None:
    why = r"git does not track fast\.py, which was imported.*git add -f.*--tokbudget-allow-dirty"
    old = baseline()

    with pytest.raises(RefreshRefusedError, match=why):
        propose_anchor(_untracked("fast.py"), old=None, terms=TERMS)
    with pytest.raises(RefreshRefusedError, match=why):
        append_sessions(_untracked("fast.py"), old=old, terms=TERMS)


@pytest.mark.parametrize("made", [_dirty, _untracked])
def test_a_baseline_of_uncommitted_code_says_so(made: Callable[[str], list[RunRecord]]) -> None:
    proposal = propose_anchor(made("src/a.py"), old=None, terms=_terms(allow_dirty=True))

    assert {one.commit for one in proposal.sessions} == {"c0ffee-dirty"}


def test_outside_git_a_refresh_has_no_commit_and_is_taken() -> None:
    measured = runs(STEADY, machine=machine(commit=Commit(reason="no git")))

    assert propose_anchor(measured, old=None, terms=TERMS).entry.commit is None


def test_every_fit_session_is_appended_the_slow_one_too() -> None:
    unsteady = WarmUp(steps=9, seconds=1.0, steady=False, reason="x")
    measured = [*runs([1000.0, 1001.0, 999.0, 700.0]), run(1000.0, warmup=unsteady)]

    appended = append_sessions(measured, old=baseline(), terms=TERMS)

    assert [one.tok_s for one in appended] == [1000.0, 1001.0, 999.0, 700.0]
    assert {one.job for one in appended} == {"job-2"}


@pytest.mark.parametrize(
    ("measured", "old", "why"),
    [
        (runs([1000.0]), None, "no baseline to append to.*--tokbudget-refresh"),
        (_dirty("a.py"), baseline(), "uncommitted changes"),
        (runs([1000.0], workload=workload(declaration={})), baseline(), "another workload"),
        (runs([0.0]), baseline(), "none of 1 sessions is fit: no tokens"),
    ],
)
def test_what_must_not_be_appended_is_refused(
    measured: list[RunRecord], old: Any, why: str
) -> None:
    with pytest.raises(RefreshRefusedError, match=why):
        append_sessions(measured, old=old, terms=TERMS)


def test_a_candidate_holds_what_was_measured() -> None:
    made = candidate(runs([1000.0]), terms=TERMS)

    assert [one.tok_s for one in made.anchor] == [1000.0]
    assert made.machine_class == h200_class()
    assert msgspec.structs.asdict(made.workload) == msgspec.structs.asdict(workload())
    with pytest.raises(RefreshRefusedError):
        candidate(runs([0.0]), terms=TERMS)
