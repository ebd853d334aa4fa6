"""What of the instruments' records goes where in the evidence, and what is missing in it."""

from __future__ import annotations

from msgspec.structs import replace

from ...analysis.cpu_summary import CpuSummary
from ...analysis.native_frames import native_table
from ...analysis.traced_evidence import TraceFindings
from ...evidence.instruments import TRACE, Traced
from ...evidence.native import NativeSamples
from ...records.base import Unavailable
from ...records.cpu import CpuRecord
from ...records.evidence import Evidence
from ...records.run import Pass

LEAST_NATIVE_SAMPLES = 10
GAP_NAMES = "gap names"
"""What samples of the trace would have named: time of a thread between its calls."""


def frames_ms(summary: CpuSummary, timing: Pass) -> list[float]:
    """What each hot frame costs its threads, ms a step of the timing pass.

    It is the frame's share of the sampled time in a step of the timing pass: a host changes its
    speed between two passes, and what a step grew by is measured in the timing pass alone.
    """
    if summary.tables is None:
        return []
    return [cost_s / summary.tables.seconds * timing.mean_step_ms for cost_s in summary.costs_s]


def missing_host(summary: CpuSummary, sampled: Pass | None) -> dict[str, str]:
    """Reasons by the names of ``run.json``."""
    missing = dict(summary.unavailable)
    if sampled is None:
        return missing
    if not summary.hot_frames:
        missing["hot_frames"] = missing.get("stacks", "no frame cost a hundredth of the time")
    if not summary.threads:
        missing["threads"] = missing.get("thread clocks", "no thread was seen")
    return missing


def unsampled(cpu: CpuRecord) -> str:
    """Why no stack of a trace could name what its threads did between their calls."""
    if cpu.stacks is None:
        return cpu.unavailable.get("stacks", "no stack was sampled in the trace")
    return cpu.stacks.unaligned or "no stack was sampled in the trace"


def with_native(found: Evidence, native: NativeSamples | Unavailable, rootdir: str) -> Evidence:
    """Add what native code ran most, or why that is not known."""
    missing = native
    if isinstance(native, NativeSamples):
        table = native_table(native.samples, native.cpu_s, native.system_s, native.rate_hz, rootdir)
        if table.samples >= LEAST_NATIVE_SAMPLES:
            return replace(
                found,
                native_frames=table.frames,
                native_sampling=f"{table.cpu_s:.1f} s of CPU time in {native.seconds:.1f} s; "
                f"{table.samples:,} samples, {native.rate_hz:.0f} Hz",
            )
        missing = Unavailable(
            f"py-spy saw a thread run in {table.samples} samples of {native.seconds:.1f} s: fewer "
            f"than {LEAST_NATIVE_SAMPLES} tell nothing"
        )
    names = ("native_frames", "native_sampling")
    return replace(found, unavailable={**found.unavailable, **dict.fromkeys(names, str(missing))})


def without_device(found: Evidence, reason: str) -> Evidence:
    """Say of everything that a device trace tells why it is missing."""
    names = ("ledger", "causes", TRACE)
    return replace(found, unavailable={**dict.fromkeys(names, reason), **found.unavailable})


def with_trace(found: Evidence, findings: TraceFindings, record: Traced, steps: int) -> Evidence:
    """Add what a device trace of ``steps`` steps, and the allocator beside it, told."""
    counters = {name: sum(counts) / steps for name, counts in findings.counters.items()}
    memory: dict[str, float] = {}
    unavailable = dict(found.unavailable)
    if isinstance(record.allocator, Unavailable):
        unavailable["memory"] = str(record.allocator)
    else:
        for one in record.allocator:
            counters |= {
                name: counters.get(name, 0.0) + value
                for name, value in one.counters_per_step(steps).items()
                if not name.startswith("memory_")
            }
            memory[f"{one.device} peak"] = one.peak_allocated_bytes
            memory[f"{one.device} peak reserved"] = one.peak_reserved_bytes
            memory[f"{one.device} reserved growth"] = one.reserved_change_bytes
    if isinstance(findings.causes, Unavailable):
        unavailable["causes"] = str(findings.causes)
    return replace(
        found,
        ledgers=findings.ledgers,
        causes=None if isinstance(findings.causes, Unavailable) else findings.causes,
        sentences=[*found.sentences, *findings.sentences],
        counters={**found.counters, **counters},
        counters_by_step=findings.counters,
        memory=memory,
        unavailable=unavailable,
    )
