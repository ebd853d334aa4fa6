"""The evidence pass of one session: which instruments it has, and what becomes of their records."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...analysis.counters import counters_by_step
from ...analysis.cpu_summary import summarize_cpu
from ...analysis.ledger import build_ledger
from ...analysis.timeline import Timeline, Window
from ...analysis.trace_samples import trace_samples
from ...analysis.traced_evidence import (
    TraceEvidence,
    step_ends_ns,
    traced_evidence,
)
from ...evidence.instruments import STACKS, TRACE, Canary, DeviceTrace, HostStacks, Traced
from ...evidence.kineto import RawTrace
from ...evidence.native import NATIVE, NativeSamples, NativeStacks
from ...records.base import Unavailable
from ...records.counters import TracedCounters
from ...records.cpu import CpuRecord
from ...records.evidence import NATIVE_NOT_ASKED, Evidence
from ...records.run import Pass, RunRecord
from .evidence_parts import (
    GAP_NAMES,
    frames_ms,
    missing_host,
    unsampled,
    with_native,
    with_trace,
    without_device,
)

if TYPE_CHECKING:
    from ...measuring.measurement import Measurement
    from ...measuring.recorder import Recorder
    from ...ports import Instrument


class EvidencePass:
    """Made before a measurement, asked for its evidence when the workload has ended."""

    def __init__(
        self,
        recorder: Recorder,
        rootdir: Path,
        *,
        explains: bool = True,
        counts: bool = False,
        native: bool = False,
    ) -> None:
        """``explains``: find where the time goes. ``counts``: keep the counts of the trace.
        ``native``: to explain, take native stacks too."""
        self._rootdir = str(rootdir)
        self._explains, self._counts = explains, counts
        self._stacks = HostStacks()
        self._trace = DeviceTrace(canary=_canary, roles=lambda: _roles(recorder))
        self._native = NativeStacks() if native else None

    @property
    def instruments(self) -> Sequence[Instrument]:
        """In the order in which they are used: a process stays slow after a device trace, and
        nothing may rest on a process that was paused."""
        if not self._explains:
            return (self._trace,)
        last = (self._native,) if self._native is not None else ()
        return (self._stacks, self._trace, *last)

    def added_to(
        self, run: RunRecord, measurement: Measurement, evidence: Callable[[], Evidence]
    ) -> RunRecord:
        """Return ``run`` with what this pass was made for."""
        if self._counts:
            run = replace(run, traced=self._traced_counters(measurement, run.unix_offset_ns))
        return replace(run, evidence=evidence()) if self._explains else run

    def once(self, measurement: Measurement, unix_offset_ns: int) -> Callable[[], Evidence]:
        """Return what computes the evidence when first asked, and then keeps it.

        A fault of ours in it costs the evidence, never the measurement: the gate still gates.
        """

        @functools.cache
        def found() -> Evidence:
            try:
                return self.evidence(measurement, unix_offset_ns)
            except Exception as error:  # noqa: BLE001 - said in the report, with where it happened
                where = traceback.extract_tb(error.__traceback__)[-1]
                reason = (
                    f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
                    "; please report this"
                )
                return Evidence(unavailable={"evidence": reason})

        return found

    def evidence(self, measurement: Measurement, unix_offset_ns: int) -> Evidence:
        """Compute what the instruments' records say; takes seconds on a long trace."""
        passes = {one.instrument: one for one in measurement.passes if one.kind == "evidence"}
        rates = {name: one.tok_s / measurement.timing.tok_s for name, one in passes.items()}
        found = Evidence(
            perturbation=rates,
            unavailable={
                name: reason
                for name, reason in measurement.unavailable.items()
                if name in (STACKS, TRACE)
            },
        )
        found = self._with_host(found, measurement, passes.get(STACKS))
        found = with_native(found, self._native_samples(measurement, passes), self._rootdir)
        return self._with_device(found, measurement, passes.get(TRACE), unix_offset_ns)

    def _traced_counters(self, measurement: Measurement, unix_offset_ns: int) -> TracedCounters:
        """The counts of the trace, if it is complete; why not, else."""
        record = self._trace.traced
        passes = {one.instrument: one for one in measurement.passes if one.kind == "evidence"}
        traced = passes.get(TRACE)
        if traced is None or record is None:
            reason = measurement.unavailable.get(TRACE, "no device was traced")
            return TracedCounters(unavailable=reason)
        if isinstance(record.trace, Unavailable):
            return TracedCounters(unavailable=str(record.trace))
        timeline = self._timeline(record.trace, measurement, traced, unix_offset_ns)
        ledger = build_ledger(timeline)
        if isinstance(ledger, Unavailable):
            return TracedCounters(unavailable=str(ledger))
        counts = counters_by_step(timeline)
        return TracedCounters(
            instrument=" without ".join(("kineto", *sorted(record.trace.missing))),
            by_step={name: one.tolist() for name, one in counts.items()},
        )

    def _timeline(
        self, trace: RawTrace, measurement: Measurement, traced: Pass, unix_offset_ns: int
    ) -> Timeline:
        ends = step_ends_ns(measurement.marks, (traced.start_ns, traced.end_ns), unix_offset_ns)
        window = Window(
            traced.start_ns + unix_offset_ns, traced.end_ns + unix_offset_ns, traced.steps, ends
        )
        return trace.timeline(window, _cuda_indices(measurement.devices) or None)

    def _native_samples(
        self, measurement: Measurement, passes: Mapping[str, Pass]
    ) -> NativeSamples | Unavailable:
        if self._native is None:
            return Unavailable(NATIVE_NOT_ASKED)
        if NATIVE not in passes:
            return Unavailable(measurement.unavailable.get(NATIVE, "no step was made under it"))
        return self._native.record()

    def _with_host(
        self, found: Evidence, measurement: Measurement, sampled: Pass | None
    ) -> Evidence:
        """Add hot frames, threads, and the sentences that marks alone allow."""
        timing = measurement.timing
        window_ns = (timing.start_ns, timing.end_ns)
        record = CpuRecord(start_ns=0, end_ns=0)
        if sampled is not None:
            record = self._stacks.cpu.record(measurement.marks)
        queues, marks, spans = measurement.queues, measurement.marks, measurement.spans
        summary = summarize_cpu(record, queues, marks, window_ns, self._rootdir, spans)
        counters = {} if sampled is None else self._host_counters(record, sampled)
        return replace(
            found,
            hot_frames=summary.hot_frames,
            frames_ms=frames_ms(summary, timing),
            threads=summary.threads,
            sentences=summary.sentences,
            sampling=summary.sampling,
            counters={**found.counters, **counters},
            unavailable={**found.unavailable, **missing_host(summary, sampled)},
        )

    def _host_counters(self, record: CpuRecord, sampled: Pass) -> dict[str, float]:
        steps = max(sampled.steps, 1)
        pauses = record.pauses
        pause_ns = sum(end - start for start, end in zip(pauses.start_ns, pauses.end_ns))
        counters = {
            "gc_collections": len(pauses.start_ns) / steps,
            "gc_pause_ms": pause_ns / 1e6 / steps,
        }
        compiled = self._stacks.compilations
        if not isinstance(compiled, Unavailable):
            counters |= compiled.counters_per_step(steps)
        return counters

    def _with_device(
        self, found: Evidence, measurement: Measurement, traced: Pass | None, unix_offset_ns: int
    ) -> Evidence:
        """Add ledgers, causes and counters where a CUDA device was traced."""
        record = self._trace.traced
        if traced is None or record is None:
            return without_device(found, found.unavailable.get(TRACE, "no device was traced"))
        if isinstance(record.trace, Unavailable):
            return without_device(found, str(record.trace))
        cpu = self._trace.cpu.record(measurement.marks)
        evidence = self._trace_evidence(
            record, record.trace, cpu, measurement, traced, unix_offset_ns
        )
        findings = traced_evidence(evidence)
        if isinstance(findings, Unavailable):
            return without_device(found, str(findings))
        if evidence.samples is None:
            found = replace(found, unavailable={**found.unavailable, GAP_NAMES: unsampled(cpu)})
        return with_trace(found, findings, record, traced.steps)

    def _trace_evidence(
        self,
        record: Traced,
        trace: RawTrace,
        cpu: CpuRecord,
        measurement: Measurement,
        traced: Pass,
        unix_offset_ns: int,
    ) -> TraceEvidence:
        timing = measurement.timing
        traced_ns = (traced.start_ns, traced.end_ns)
        timeline = self._timeline(trace, measurement, traced, unix_offset_ns)
        return TraceEvidence(
            timeline=timeline,
            timing_step_ms=timing.mean_step_ms,
            timing_steps=timing.steps,
            timing_ns=(timing.start_ns, timing.end_ns),
            traced_ns=traced_ns,
            unix_offset_ns=unix_offset_ns,
            marks=measurement.marks,
            queues=measurement.queues,
            samples=trace_samples(cpu, timeline.threads, unix_offset_ns, self._rootdir),
            collections=record.pauses.labels(timeline.threads),
            canary_unix_ns=record.canary_unix_ns,
            canary_ms=record.canary_untraced_ns / 1e6,
        )


def _canary(device: str) -> Canary:
    from ...measuring.canary import tiny_step

    return tiny_step(device)


def _roles(recorder: Recorder) -> Mapping[int, str]:
    return {one.native_id: one.role for one in recorder.streams() if one.role is not None}


def _cuda_indices(devices: Sequence[str]) -> tuple[int, ...]:
    named = (one.partition(":") for one in devices)
    return tuple(sorted(int(index or 0) for kind, _, index in named if kind == "cuda"))
