"""The figures of a baseline are those of its anchor."""

from __future__ import annotations

import msgspec
import pytest

from pytest_tokbudget.analysis.baseline_figures import baseline_figures
from pytest_tokbudget.errors import UnreadableError
from pytest_tokbudget.records.baseline import Baseline, StoredSession
from pytest_tokbudget.records.machine import MachineClass, Software
from pytest_tokbudget.records.workload import Workload


def stored(tok_s: float, job: str = "one") -> StoredSession:
    return StoredSession(
        tok_s=tok_s,
        steps=200,
        seconds=3.0,
        warmup_steps=20,
        warmup_seconds=1.0,
        job=job,
        commit=None,
        host_hash="4f2a",
        unix_s=1,
        software=Software(python="3.11", tokbudget="0.1.0"),
    )


BASELINE = Baseline(
    workload=Workload(path="a.py", qualname="test_a", nodeid="a.py::test_a"),
    machine_class=MachineClass(slug="cpu", fields={}),
    token_kind="real",
    anchor=[stored(800.0), stored(1000.0), stored(1250.0)],
    log=[],
)


def test_the_mean_is_geometric_and_of_the_anchor_alone() -> None:
    appended = msgspec.structs.replace(BASELINE, appended=[stored(1.0, "two")])

    assert baseline_figures(BASELINE).tok_s == pytest.approx(1000)
    assert baseline_figures(appended).tok_s == pytest.approx(1000)
    assert baseline_figures(appended).jobs == 2


def test_the_spread_is_one_standard_deviation() -> None:
    figures = baseline_figures(BASELINE)

    # The logarithms lie ln(1.25) apart, so their deviation is ln(1.25), which is 25 %.
    assert figures.spread_pct == pytest.approx(25)
    assert (figures.degrees, figures.jobs) == (2, 1)


@pytest.mark.parametrize("field", ["anchor", "appended"])
@pytest.mark.parametrize("tok_s", [0.0, -1.0, float("nan")])
def test_a_rate_that_is_none_is_refused(field: str, tok_s: float) -> None:
    broken = msgspec.structs.replace(BASELINE, **{field: [stored(tok_s)]})

    with pytest.raises(UnreadableError, match=r"a\.py::test_a has no usable rates"):
        baseline_figures(broken)


def test_an_empty_anchor_is_refused() -> None:
    with pytest.raises(UnreadableError, match="expected an anchor"):
        baseline_figures(msgspec.structs.replace(BASELINE, anchor=[]))
