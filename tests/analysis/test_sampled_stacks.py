from __future__ import annotations

import msgspec

from pytest_tokbudget.analysis.chrometrace import RawStacks
from pytest_tokbudget.analysis.cpu_summary import summarize_cpu
from pytest_tokbudget.analysis.sampled_stacks import Sampling, sampled_stacks
from pytest_tokbudget.analysis.trace_samples import trace_samples
from pytest_tokbudget.records.cpu import CpuRecord

MS = 1_000_000
ROUNDS = 100


def raw_stacks() -> RawStacks:
    """A working thread, and a beacon that is seen in its first state for ever."""
    return RawStacks(
        threads=[(7, "tokbudget-beacon"), (8, "works")],
        frames=[("beacon_a", "/app/beacon.py", 1), ("work", "/app/work.py", 5)],
        stacks=[(0,), (1,)],
        round_us=[at * 10_000 for at in range(ROUNDS)],
        runs=[(0, 0, 0, ROUNDS - 1), (1, 1, 0, ROUNDS - 1)],
    )


def sampling() -> Sampling:
    return Sampling(
        beacon_ns=[at * 13 * MS for at in range(90)],
        beacon_id=7,
        markers=("beacon_a", "beacon_b"),
        bounds_ns=(50 * MS, 1_140 * MS),
        asked_hz=100.0,
        samples=2 * ROUNDS,
        errors=0,
        sampler="py-spy 0.4",
    )


def test_without_a_clock_the_tables_stay_and_only_the_join_is_lost() -> None:
    stacks = sampled_stacks(raw_stacks(), sampling())
    assert "agree with the beacon's log" in stacks.unaligned
    # It began between its spawning and its end less its own time: 50 to 150 ms.
    assert stacks.round_ns[0] == 100 * MS
    assert stacks.clock_uncertainty_ns == 50 * MS
    record = CpuRecord(start_ns=0, end_ns=1_200 * MS, stacks=stacks)
    assert msgspec.json.decode(msgspec.json.encode(record), type=CpuRecord) == record
    summary = summarize_cpu(record, [], [], (0, 1_200 * MS))
    assert [one.function for one in summary.hot_frames] == ["work"]
    assert "not on the trace's clock, which it is not joined to: at best" in summary.sampling
    assert trace_samples(record, [], 0) is None
