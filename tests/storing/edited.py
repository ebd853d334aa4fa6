"""Baselines as refreshes and appends write them, and files edited by hand afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tokbudget.errors import UnreadableError
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.conditions import Conditions
from pytest_tokbudget.records.marks import MarkSeries
from pytest_tokbudget.records.run import CanarySeries, RunRecord
from pytest_tokbudget.storing.baselines import BaselineDirectory
from pytest_tokbudget.storing.refresh import append_sessions, propose_anchor
from pytest_tokbudget.storing.refresh_log import RefreshTerms

from .builders import STEADY, h200_class, run, workload

Edit = Callable[[dict[str, Any]], object]


def measured(tok_s: float) -> RunRecord:
    """A run with all that a session may keep: canaries, conditions, tokens step by step."""
    tokens = int(tok_s * 10)
    counts = [tokens // 100] * 99 + [tokens - 99 * (tokens // 100)]
    times = [5_000_000_000 + 100_000_000 * at for at in range(1, 101)]
    return run(
        tok_s,
        marks=[
            MarkSeries(
                worker="w",
                counts=True,
                times_ns=times,
                tokens={"real": counts},
                window=(-1, 99),
                window_ns=(5_000_000_000, 15_000_000_000),
            )
        ],
        canaries=[
            CanarySeries(name="host_loop", where="before", times_ns=[1], durations_ns=[10**6])
        ],
        conditions=Conditions(
            seconds=12.0, usable_cores=16, core_wait_share=0.01, steal_share=0.002
        ),
    )


def refreshed(root: Path, *, times: int) -> Path:
    """The file of a baseline that was refreshed ``times`` times, with a session appended."""
    store = BaselineDirectory(root)
    for number in range(times):
        terms = RefreshTerms(reason=f"why {number}", job=f"job-{number}", today="2026-01-02")
        rates = [rate * (1 + 0.02 * number) for rate in STEADY]
        proposal = propose_anchor([measured(one) for one in rates], old=None, terms=terms)
        store.replace_anchor(workload(), h200_class(), proposal.sessions, proposal.entry)
        store.flush()
    found = store.load(workload(), h200_class())
    assert isinstance(found, Baseline)
    later = RefreshTerms(reason="", job="main", today="2026-01-03")
    appended = append_sessions([measured(1000.0)], old=found, terms=later)
    store.append(workload(), h200_class(), appended)
    store.flush()
    return store.path_of(workload(), h200_class())


def edit_file(path: Path, *edits: Edit) -> None:
    data = json.loads(path.read_text())
    for edit in edits:
        edit(data)
    path.write_text(json.dumps(data))


def refusal(path: Path) -> str:
    """What is said of the file by whatever reads baselines to judge by them."""
    with pytest.raises(UnreadableError) as caught:
        BaselineDirectory(path.parents[1]).load(workload(), h200_class())
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.endswith("restore it from git, or delete it and refresh (--tokbudget-refresh)")
    return text


def put(value: object, *keys: str | int) -> Edit:
    def edit(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return edit


def drop(*keys: str | int) -> Edit:
    def edit(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        del data[keys[-1]]

    return edit
