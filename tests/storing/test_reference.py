"""The evidence that a baseline keeps: trimmed, rounded, small, and left alone by appending."""

from __future__ import annotations

import json
from math import pi
from pathlib import Path

import msgspec

from pytest_tokbudget.analysis.cpu_summary import MOST_FRAMES
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.causes import CauseMs, CauseTable
from pytest_tokbudget.records.evidence import DeviceLedgerMs, Evidence
from pytest_tokbudget.records.result import FrameResult, ThreadResult
from pytest_tokbudget.storing.codec import decode, encode_baseline
from pytest_tokbudget.storing.reference import (
    MOST_CAUSES,
    MOST_THREADS,
    reference_of,
)
from pytest_tokbudget.storing.refresh import append_sessions, propose_anchor
from pytest_tokbudget.storing.refresh_log import RefreshTerms

from .builders import STEADY, baseline, run, runs

TERMS = RefreshTerms(reason="fused AdamW", job="job-2", today="2026-01-03")
FILE = "examples/a_directory/of_some_length/simulated_pipeline.py"
BUSY = ("compute", "exposed communication", "exposed copy", "exposed memset")
ROWS_MS = dict.fromkeys((*BUSY, *(f"idle: a cause of some length {n}" for n in range(8))), pi)

LARGEST = Evidence(
    ledgers=[
        DeviceLedgerMs(
            device=f"cuda:{n}", step_ms=40.0, busy_ms=pi, rows_ms=ROWS_MS, traced_ms=ROWS_MS
        )
        for n in range(8)
    ],
    causes=CauseTable(
        step_ms=40.0,
        traced_step_ms=44.0,
        devices=[],
        causes=[
            CauseMs(cause=f"cause {n}", thread="MainThread", direct_ms=n / pi, what_if_ms=n / 7)
            for n in range(100)
        ],
    ),
    counters={f"kernel_launches_{n}": n / pi for n in range(30)},
    counters_by_step={f"kernel_launches_{n}": [n] * 100 for n in range(30)},
    hot_frames=[
        FrameResult(
            function=f"a_function_{n}",
            file=FILE,
            line=n,
            share=n / 100 / pi,
            samples=n,
            threads=["MainThread"],
        )
        for n in range(50)
    ],
    frames_ms=[n / pi for n in range(50)],
    native_sampling="9.0 s of CPU time",
    unavailable={"native_frames": "not asked for", "causes": "no device"},
    threads=[ThreadResult(name=f"worker {n}", tid=n, role="loader") for n in range(100)],
)


def test_the_bulk_is_left_out_and_the_largest_causes_are_kept() -> None:
    kept = reference_of([run(), run(evidence=LARGEST)])

    assert kept is not None
    assert kept.causes is not None
    assert [one.cause for one in kept.causes.causes] == [
        f"cause {n}" for n in range(99, 99 - MOST_CAUSES, -1)
    ]
    assert kept.counters_by_step == {}
    assert kept.hot_frames == LARGEST.hot_frames[:MOST_FRAMES]
    assert kept.frames_ms == LARGEST.frames_ms[:MOST_FRAMES]
    assert kept.threads == LARGEST.threads[:MOST_THREADS]
    assert [one.rows_ms for one in kept.ledgers] == [ROWS_MS] * 8
    assert kept.ledgers[0].traced_ms == {}
    assert kept.native_sampling == ""
    assert kept.unavailable == {"causes": "no device"}


def test_sessions_without_evidence_leave_none() -> None:
    assert reference_of(runs(STEADY)) is None


def test_four_digits_are_stored_in_a_small_file() -> None:
    data = encode_baseline(baseline(reference=reference_of([run(evidence=LARGEST)])))

    stored = json.loads(data)["reference"]
    assert stored["ledgers"][0]["rows_ms"]["compute"] == 3.142
    assert stored["counters"]["kernel_launches_20"] == 6.366
    assert len(data) < 20_000


def test_any_text_survives_being_put_on_one_line() -> None:
    odd = 'a } { "b" [0] \n  c'
    frame = FrameResult(function=odd, file=odd, line=1, share=0.5, samples=1, threads=[odd])
    cause = CauseMs(cause=odd, direct_ms=1.0, devices=[odd, odd])
    table = CauseTable(step_ms=1.0, traced_step_ms=1.0, devices=[], causes=[cause])
    kept = Evidence(hot_frames=[frame] * 3, causes=table, sentences=[odd], unavailable={odd: odd})

    read = decode(
        encode_baseline(baseline(reference=kept)), Baseline, path=Path("a.json"), what_next=""
    )

    assert read.reference == kept


def test_a_refresh_keeps_it_and_appending_leaves_it_alone() -> None:
    first = run(STEADY[0], evidence=LARGEST)
    proposal = propose_anchor([first, *runs(STEADY[1:])], old=None, terms=TERMS)
    old = baseline(reference=proposal.reference)

    other = LARGEST.__class__(counters={"memsets": 1.0})
    appended = append_sessions(runs(STEADY, evidence=other), old=old, terms=TERMS)

    assert proposal.reference == reference_of([first])
    new = msgspec.structs.replace(old, appended=appended)
    kept, was = (json.loads(encode_baseline(one))["reference"] for one in (new, old))
    assert kept == was


def test_an_old_baseline_without_it_is_read() -> None:
    tree = json.loads(encode_baseline(baseline()))
    del tree["reference"]

    read = decode(json.dumps(tree).encode(), Baseline, path=Path("old.json"), what_next="")

    assert read.reference is None
    assert read.anchor == baseline().anchor
