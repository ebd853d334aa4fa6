"""What the evidence says of what it could not see."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_tokbudget.entry.wiring.evidence_parts import unsampled
from tests.analysis.cpu_records import record_of, stacks_of


def test_a_trace_without_names_says_what_kept_its_stacks_from_it() -> None:
    refused = replace(record_of(None), unavailable={"stacks": "py-spy may not attach"})
    adrift = replace(stacks_of({"MainThread": ["f:1"]}), unaligned="the beacon was never seen")

    assert unsampled(refused) == "py-spy may not attach"
    assert unsampled(record_of(adrift)) == "the beacon was never seen"
    assert unsampled(record_of(None)) == "no stack was sampled in the trace"
