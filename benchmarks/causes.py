"""Accuracy of the replay and of both ways to a cause, on recorded runs with unprofiled truth.

    python benchmarks/causes.py --data DIR [--canary DIR]

Parameters are fitted on the unfaulted windows only: the tracer's cost per record on the most
launch-bound ``none`` window of the same trace density (of ``--canary``, else of ``--data``). The
timing pass of a faulted window is never looked at for its own replay.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.recorded_sessions import load_session
from benchmarks.recordings import Recording, load_recordings, tags_in
from pytest_tokbudget.analysis.call_sites import call_sites, with_call_sites
from pytest_tokbudget.analysis.cause_table import cause_table
from pytest_tokbudget.analysis.device_growth import STREAM_WAIT
from pytest_tokbudget.analysis.evidence_findings import rank_findings
from pytest_tokbudget.analysis.gap_classes import name_gaps
from pytest_tokbudget.analysis.growth import what_if_findings
from pytest_tokbudget.analysis.host_factor import Canary, HostFit, fit_host
from pytest_tokbudget.analysis.replay_cause import ReplayCause
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_program import Program
from pytest_tokbudget.analysis.whatif import WhatIf, what_if
from pytest_tokbudget.records.causes import CauseTable
from pytest_tokbudget.records.evidence import Evidence
from pytest_tokbudget.records.result import Finding

UNFAULTED = "none"
EXPECTED = {
    "python": (ReplayCause.PYTHON.value,),
    "item": (ReplayCause.SYNC.value, ReplayCause.COPY.value),
    "cache": (ReplayCause.ALLOCATOR.value,),
    "copy": (ReplayCause.COPY.value,),
    "sleep": (ReplayCause.SLEEP.value, f"{ReplayCause.PYTHON.value}: nap"),
    "queue": (ReplayCause.WAIT.value,),
    "stream": (ReplayCause.WAIT.value, STREAM_WAIT),
}
KNOWN = ("python", "sleep")
"""Faults whose size is known: on launch-bound loops the truth's host wanders."""
INJECTED_MS = 3.0
"""That size where a recording does not tell it."""


@dataclass(frozen=True)
class Studied:
    """One window with everything said of it."""

    recording: Recording
    program: Program
    fit: HostFit
    what: WhatIf
    table: CauseTable

    @property
    def error(self) -> float:
        """Replayed step ÷ mean of the unprofiled repeats − 1."""
        return (self.table.replayed_step_ms or 0.0) / self.recording.mean_ms - 1

    @property
    def in_range(self) -> bool:
        """Whether the replayed step is within 10 % of the range of the unprofiled repeats."""
        clean, replayed = self.recording.clean_ms, self.table.replayed_step_ms or 0.0
        return 0.9 * min(clean) <= replayed <= 1.1 * max(clean)


def load_folder(folder: Path) -> list[Recording]:
    """Every recording in a folder, of either form."""
    recordings = [one for tag in tags_in(folder) for one in load_recordings(folder, tag)]
    for path in sorted(folder.glob("*.npz")):
        if not path.stem.startswith("ev_"):
            recordings += load_session(path)
    return recordings


def read_program(recording: Recording) -> Program:
    """The program of a recording, its long gaps named by the stack samples."""
    timeline, queues, main = recording.timeline, recording.queues, recording.main_thread
    decoded = decode(timeline, None, queues, main)
    if recording.samples is None:
        return decoded.program
    labels = name_gaps(decoded, recording.samples, timeline.window)
    return decode(timeline, labels, queues, main).program


def study(recording: Recording, canary: Canary | None) -> Studied:
    """Replay one window under the canary's host model and price its causes."""
    program = read_program(recording)
    fit = fit_host(program, recording.canary or canary)
    what = what_if(program, fit.model, recording.mean_ms)
    table = cause_table(
        recording.timeline, program, recording.mean_ms, fit, what, recording.queue_waits_ms
    )
    if recording.samples is not None:
        decoded = decode(recording.timeline, None, recording.queues, recording.main_thread)
        sites = call_sites(decoded, recording.samples, recording.timeline)
        table = with_call_sites(table, sites)
    return Studied(recording, program, fit, what, table)


def find_canary(recordings: list[Recording], *, ops: bool) -> Canary | None:
    """The unfaulted window of one trace density whose devices are the least busy."""
    best: tuple[float, Canary] | None = None
    for one in recordings:
        if one.fault != UNFAULTED or (one.timeline.ops is not None) != ops:
            continue
        program = read_program(one)
        busy = float(program.device.dur_ns.sum()) / program.steps / 1e6 / one.mean_ms
        if best is None or busy < best[0]:
            best = busy, Canary(program, one.mean_ms)
    return None if best is None else best[1]


def truth_ms(one: Recording, baseline: Recording) -> float:
    """What the fault costs unprofiled, ms a step: measured in pairs, else from the repeats."""
    if one.cost_ms is not None:
        return one.cost_ms[0]
    return float(np.mean(np.subtract(one.clean_ms, baseline.clean_ms)))


def replay_table(studied: list[Studied]) -> Table:
    """Replayed step against the unprofiled repeats."""
    table = Table(title="Replayed step (ms) against unprofiled repeats")
    for column in ("run", "fault", "traced", "unprofiled", "replayed", "error", "≤ 10 % of range"):
        table.add_column(column, justify="left" if column in ("run", "fault") else "right")
    for column in ("identity", "elasticity", "speed"):
        table.add_column(column, justify="right")
    for one in studied:
        clean = one.recording.clean_ms
        table.add_row(
            one.recording.tag,
            one.recording.fault,
            f"{one.table.traced_step_ms:.2f}",
            f"{min(clean):.2f} … {max(clean):.2f}",
            f"{one.table.replayed_step_ms:.2f}",
            f"{one.error:+.1%}",
            "yes" if one.in_range else "NO",
            f"{one.what.identity:+.3%}",
            f"{one.fit.elasticity:.2f}",
            f"{one.fit.model.speed:.2f}",
        )
    return table


def causes_table(studied: list[Studied]) -> Table:
    """Both ways to the cause of each fault against its truth."""
    table = Table(title="Cause of each fault (ms a step)")
    for column in ("run", "fault", "paired truth", "known", "growth: first cause", "ms"):
        table.add_column(column, justify="left" if column != "ms" else "right")
    for column in ("what-if: first grown cause", "ms "):
        table.add_column(column, justify="left" if column != "ms " else "right")
    table.add_column("expected cause: growth / what-if", justify="right")
    unfaulted = {one.recording.tag: one for one in studied if one.recording.fault == UNFAULTED}
    for one in studied:
        baseline = unfaulted.get(one.recording.tag)
        if one.recording.fault == UNFAULTED or baseline is None:
            continue
        first = grown(one, in_pairs(baseline.table, one.recording), baseline.recording.sampled)
        second = grown_by_what_if(one.table, baseline.table)
        known = (one.recording.injected_ms or INJECTED_MS) if one.recording.fault in KNOWN else None
        table.add_row(
            one.recording.tag,
            one.recording.fault,
            f"{truth_ms(one.recording, baseline.recording):.2f}",
            "" if known is None else f"{known:.2f}",
            *_top([(f.cause, f.delta_ms_per_step or 0.0) for f in first]),
            *_top(second),
            _expected(one, first, second),
        )
    return table


def grown(one: Studied, then: CauseTable, sampled_then: Evidence | None) -> list[Finding]:
    """Growth of each cause as the gate ranks it, by stacks too where both sides have them."""
    sampled = one.recording.sampled
    if sampled is None or sampled_then is None:
        sampled = sampled_then = Evidence()
    return rank_findings(replace(sampled, causes=one.table), replace(sampled_then, causes=then))


def in_pairs(baseline: CauseTable, faulted: Recording) -> CauseTable:
    """The baseline's causes with the step that alternated with the faulted one, as in an A/B."""
    if faulted.reference_ms is None:
        return baseline
    return replace(baseline, step_ms=faulted.reference_ms)


def grown_by_what_if(now: CauseTable, then: CauseTable) -> list[tuple[str, float]]:
    """Growth of each cause's row of the replay, largest first."""
    old = {f.cause: f.ms_per_step or 0.0 for f in what_if_findings(then)}
    new = [(f.cause, (f.ms_per_step or 0.0) - old.get(f.cause, 0.0)) for f in what_if_findings(now)]
    return sorted(new, key=lambda one: -one[1])


def _top(ranked: list[tuple[str, float]]) -> tuple[str, str]:
    return (ranked[0][0], f"{ranked[0][1]:.2f}") if ranked else ("(nothing)", "")


def _expected(one: Studied, first: list[Finding], second: list[tuple[str, float]]) -> str:
    names = EXPECTED.get(one.recording.fault, ())
    by_growth = sum(f.delta_ms_per_step or 0.0 for f in first if f.cause.startswith(names))
    by_what_if = sum(ms for cause, ms in second if cause.startswith(names))
    return f"{by_growth:.2f} / {by_what_if:.2f}"


def acceptance(studied: list[Studied], console: Console) -> None:
    """Print the figures that are asked for, the queue (which has no marks here) left out."""
    for runs in sorted({one.recording.tag.removesuffix("_cuda") for one in studied}):
        chosen = [
            one
            for one in studied
            if one.recording.tag.removesuffix("_cuda") == runs and one.recording.fault != "queue"
        ]
        errors = [abs(one.error) for one in chosen]
        faulted = [abs(one.error) for one in chosen if one.recording.fault != UNFAULTED]
        worst = max(abs(one.what.identity) for one in chosen)
        console.print(
            f"{runs}, without the queue: {sum(one.in_range for one in chosen)} of {len(chosen)} "
            f"within 10 % of the range; mean error {np.mean(errors):.1%} "
            f"(faulted windows alone {np.mean(faulted):.1%}); identity ≤ {worst:.2%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--canary", type=Path, help="folder of launch-bound recordings")
    options = parser.parse_args()
    recordings = load_folder(options.data)
    canaries = recordings if options.canary is None else load_folder(options.canary)
    by_density = {ops: find_canary(canaries, ops=ops) for ops in (False, True)}
    studied = [study(one, by_density[one.timeline.ops is not None]) for one in recordings]
    console = Console(width=190)
    console.print(replay_table(studied))
    console.print(causes_table(studied))
    acceptance(studied, console)


if __name__ == "__main__":
    main()
