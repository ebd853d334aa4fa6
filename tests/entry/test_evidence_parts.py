"""What the evidence says of what it could not see."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from msgspec.structs import replace

from pytest_tokbudget.analysis.cpu_summary import summarize_cpu
from pytest_tokbudget.analysis.speedscope import Speedscope
from pytest_tokbudget.entry import wiring
from pytest_tokbudget.entry.wiring.evidence_parts import frames_ms, unsampled, with_native
from pytest_tokbudget.evidence.native import NativeSamples
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.evidence import Evidence
from pytest_tokbudget.records.run import Pass
from tests.analysis.cpu_records import clock_of, record_of, stacks_of


def test_a_trace_without_names_says_what_kept_its_stacks_from_it() -> None:
    refused = replace(record_of(None), unavailable={"stacks": "py-spy may not attach"})
    adrift = replace(stacks_of({"MainThread": ["f:1"]}), unaligned="the beacon was never seen")

    assert unsampled(refused) == "py-spy may not attach"
    assert unsampled(record_of(adrift)) == "the beacon was never seen"
    assert unsampled(record_of(None)) == "no stack was sampled in the trace"


def test_a_frame_costs_its_share_of_a_step_of_the_timing_pass() -> None:
    """Whatever the pass of the stacks did: its host ran at another speed."""
    looks = {"MainThread": ["f:1"] * 300 + ["g:2"] * 100}
    clock = clock_of(100, "MainThread", [100 * at for at in range(41)])
    summary = summarize_cpu(record_of(stacks_of(looks), [clock]), [], [], (0, 1))
    timing = Pass(
        kind="timing",
        start_ns=0,
        end_ns=1_100_000_000,
        held_ns=100_000_000,
        steps=100,
        tokens={"real": 100},
        tok_s=100.0,
    )

    assert frames_ms(summary, timing) == pytest.approx([7.5, 2.5])
    assert frames_ms(dataclasses.replace(summary, tables=None), timing) == []


def test_native_stacks_come_last_and_only_where_asked_for() -> None:
    def names(**asked: bool) -> list[str]:
        made = wiring.evidence_pass(wiring.recorder(None), Path("/"), **asked)
        return [one.name for one in made.instruments]

    assert names(explains=True, counts=False, native=True) == ["stacks", "cuda", "native"]
    assert names(explains=True, counts=True, native=False) == ["stacks", "cuda"]
    assert names(explains=False, counts=True, native=True) == ["cuda"]


def test_native_frames_are_there_or_say_why_not() -> None:
    refused = with_native(Evidence(), Unavailable("not asked for"), "/")
    empty = with_native(Evidence(), NativeSamples(Speedscope([], []), {}, {}, 10.0, 9.0), "/")

    assert set(refused.unavailable.values()) == {"not asked for"}
    assert set(refused.unavailable) == {"native_frames", "native_sampling"}
    assert "0 samples of 9.0 s: fewer than 10 tell nothing" in empty.unavailable["native_frames"]
