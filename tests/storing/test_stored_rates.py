"""A stored rate is held against its tokens and seconds, and against the log of refreshes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.analysis.rates import timing_pass
from pytest_tokbudget.records.baseline import Baseline, StoredSession
from pytest_tokbudget.records.counters import ExactCounters
from pytest_tokbudget.records.marks import MarkSeries
from pytest_tokbudget.storing.codec import decode, encode_baseline
from pytest_tokbudget.storing.refresh_log import mean_tok_s, stored_session
from pytest_tokbudget.storing.stored_rates import rate_contradictions

from .builders import baseline, entry, run, session
from .edited import Edit, edit_file, put, refreshed, refusal


def _scaled(factor: float, *, part: str = "anchor", log: bool = False) -> Edit:
    """Multiply the rates by hand, and where ``log`` says so, the log with them."""

    def edit(data: dict[str, Any]) -> None:
        for one in data[part]:
            one["tok_s"] *= factor
        if log:
            last = data["log"][-1]
            last["new_tok_s"] = geometric_mean(one["tok_s"] for one in data["anchor"])
            ratio = last["new_tok_s"] / last["old_tok_s"]
            last["change_pct"] = 100 * (ratio - 1)
            last["change_ci_pct"] = [
                100 * (factor * (1 + end / 100) - 1) for end in last["change_ci_pct"]
            ]

    return edit


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return refreshed(tmp_path, times=2)


@pytest.mark.parametrize("factor", [0.9, 0.99999, 1.00001, 1.1, 3.0])
def test_rates_multiplied_by_hand_are_not_those_of_the_log(stored: Path, factor: float) -> None:
    mean = json.loads(stored.read_text())["log"][1]["new_tok_s"]
    edit_file(stored, _scaled(factor))

    text = refusal(stored)

    assert f"log[1].new_tok_s is {mean:.7g}, expected " in text
    found = re.search(r"expected ([0-9.]+), the geometric mean of the tok_s of the anchor", text)
    assert found is not None
    assert float(found[1]) == pytest.approx(mean * factor, rel=1e-6)


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.999])
def test_rates_lowered_together_with_the_log_are_below_their_tokens(
    stored: Path, factor: float
) -> None:
    edit_file(stored, _scaled(factor, log=True))

    text = refusal(stored)

    assert f"anchor[0].tok_s is {1020 * factor:.7g}, expected 1020 or more: 10200 tokens in" in text
    assert text.count("tok_s is") == 3, "three are shown"
    assert "; and 2 more; " in text


def test_appended_rates_are_held_against_their_tokens_too(stored: Path) -> None:
    edit_file(stored, _scaled(0.9, part="appended"))

    assert "appended[0].tok_s is 900, expected 1000 or more: 10000 tokens in 10 s" in refusal(
        stored
    )


CONTRADICTED = [
    (put(12_000, "anchor", 0, "tokens"), "anchor[0].tokens is 12000, expected 10200: 100 steps"),
    (put(1, "anchor", 0, "tokens"), "anchor[0].tokens is 1, expected 10200: 100 steps with the"),
    (put(200, "anchor", 0, "steps"), "anchor[0].tokens is 10200, expected 20400: 200 steps with"),
    (put(9.0, "anchor", 0, "seconds"), "anchor[0].tok_s is 1020, expected 1133.333 or more: 10200"),
    (put(None, "log", 1, "change_pct"), "log[1].change_pct is null, expected 2.000006, from 999"),
    (put(7.5, "log", 1, "change_pct"), "log[1].change_pct is 7.5, expected 2"),
    (put(900.0, "log", 1, "old_tok_s"), "log[1].change_pct is 2, expected 13.33"),
    (put([-5, 1], "log", 1, "change_ci_pct"), "log[1].change_ci_pct is [-5.0, 1.0], expected an"),
]


@pytest.mark.parametrize(("edit", "said"), CONTRADICTED, ids=range(len(CONTRADICTED)))
def test_what_stands_beside_a_rate_has_to_give_it(stored: Path, edit: Edit, said: str) -> None:
    edit_file(stored, edit)

    assert said in refusal(stored)


def _said(one: StoredSession) -> list[str]:
    found = baseline(anchor=[one], log=[entry(rates=[one.tok_s])])
    return list(rate_contradictions(found))


@pytest.mark.parametrize(
    ("counters", "least"),
    [
        (ExactCounters(counts={"tokens": 99}), 990.0),
        (ExactCounters(counts={"tokens": (1000, 30)}), 300.0),
        (ExactCounters(counts={}, varying={"tokens": (70, 130)}), 700.0),
        (ExactCounters(counts={}), 0.0),
        (None, 0.0),
    ],
)
def test_an_older_session_is_held_against_the_fewest_tokens_of_its_counters(
    counters: ExactCounters | None, least: float
) -> None:
    fits = session(max(least, 1e-3), counters=counters)

    assert _said(fits) == []
    if least:
        (said,) = _said(session(least * 0.9999, counters=counters))
        assert f"expected {least:.7g} or more" in said


def _worker(name: str, step_ns: int, first_ns: int, held_ns: int = 0) -> MarkSeries:
    times = [first_ns + step_ns * at for at in range(40)]
    return MarkSeries(
        worker=name,
        counts=True,
        times_ns=times,
        tokens={"real": [100] * 40},
        window=(3, 39),
        window_ns=(times[3], times[39]),
        pauses_ns=[(times[5], times[5] + held_ns)] if held_ns else [],
    )


@pytest.mark.parametrize(
    "marks",
    [
        [_worker("a", 7_654_321, 11)],
        [_worker("a", 7_654_321, 11, held_ns=1_234_567)],
        [_worker("a", 7_654_321, 11), _worker("b", 9_123_457, 5_000_000)],
        [_worker("a", 7_654_321, 11, held_ns=3), _worker("b", 123_457, 5_000_000)],
    ],
    ids=["one", "held", "two", "unlike"],
)
def test_what_is_measured_agrees_with_itself(marks: list[MarkSeries]) -> None:
    one = stored_session(run(marks=marks, passes=[timing_pass(marks, "real")]), "job")
    made = baseline(
        anchor=[one] * 3, log=[msgspec.structs.replace(entry(), new_tok_s=mean_tok_s([one]))]
    )

    read = decode(encode_baseline(made), Baseline, path=Path("b.json"), what_next="x")

    assert read.anchor[0].tokens == 100 * 36 * len(marks)
