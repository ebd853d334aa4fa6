"""Sampled stacks as samples in a trace's clock, for the naming of gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records.cpu import CpuRecord, SampledStacks
from .frame_kinds import FrameKind, frame_kind, is_library_code, is_plumbing, short_path
from .gap_classes import StackSamples
from .replay_program import FloatArray, Frame, LabelKind
from .sample_weights import run_weights
from .timeline import BoolArray, IntArray, ThreadInfo

_KINDS = {
    FrameKind.RUN: LabelKind.PYTHON,
    FrameKind.WAIT: LabelKind.WAIT,
    FrameKind.SLEEP: LabelKind.SLEEP,
}


@dataclass(frozen=True, slots=True)
class TraceSamples:
    """``samples`` in the order of their times; ``on_cpu[i]`` is the share of sample ``i`` that its
    thread's clock grants it a CPU, NaN where there is no clock."""

    samples: StackSamples
    on_cpu: FloatArray


def trace_samples(
    record: CpuRecord,
    threads: Sequence[ThreadInfo],
    unix_offset_ns: int,
    rootdir: str = "",
) -> TraceSamples | None:
    """Samples of those ``threads`` (of a trace) that were sampled; ``None`` without stacks
    on the process's clock.

    Every round in which the sampler is known to have looked is one sample a thread, corrected for
    the order in which threads are read; ``unix_offset_ns`` added to marks gives the trace's clock.
    The lines of one function count as one frame, under the line seen most often.
    """
    stacks = record.stacks
    if stacks is None or stacks.unaligned or not stacks.run_first:
        return None
    names, of_stack, sites, kinds = _frames(stacks, rootdir)
    index = {one.native_id: at for at, one in enumerate(threads) if one.native_id}
    traced = np.array([index.get(one.native_id, -1) for one in stacks.threads], np.int32)
    lag = np.array([one.lag_ns for one in stacks.threads], np.int64)
    thread = np.array(stacks.run_thread, np.int64)
    run, times = _expanded(stacks, traced[thread] >= 0)
    times = times + lag[thread[run]] + unix_offset_ns
    order = np.argsort(times, kind="stable")
    run, times = run[order], times[order]
    stack = np.array(stacks.run_stack, np.int64)[run]
    frame, site = (np.array(one, np.int32)[stack] for one in (of_stack, sites))
    samples = StackSamples(traced[thread[run]], times, frame, names, kinds, site)
    waits = np.array([kinds[one] != LabelKind.PYTHON for one in of_stack], np.bool_)
    return TraceSamples(samples, _on_cpu(record, stacks, waits)[run])


def _expanded(stacks: SampledStacks, kept: BoolArray) -> tuple[IntArray, IntArray]:
    """Run and time of every thread × round of the ``kept`` runs, blind rounds left out."""
    chosen = np.flatnonzero(kept)
    first = np.array(stacks.run_first, np.int64)[chosen]
    lengths = np.array(stacks.run_last, np.int64)[chosen] - first
    run = np.repeat(chosen, lengths)
    within = np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    times = np.array(stacks.round_ns, np.int64)[np.repeat(first, lengths) + within]
    seen = np.ones(len(times), np.bool_)
    for start, end in stacks.blind:
        # The rounds at both ends of a blind stretch are as good as any.
        seen &= (times <= start) | (times >= end)
    return run[seen], times[seen]


def _on_cpu(record: CpuRecord, stacks: SampledStacks, waits: BoolArray) -> FloatArray:
    """For each run the share of its time that its thread's clock grants it a CPU."""
    clocks = record.clocks.threads if record.clocks is not None else []
    own = {one.native_id: one for one in clocks if not one.is_process}
    weights = run_weights(stacks, own, waits)
    share: FloatArray = np.full(len(weights.wall_s), np.nan)
    np.divide(weights.cpu_s, weights.wall_s, out=share, where=weights.wall_s > 0)
    return share


def _frames(
    stacks: SampledStacks, rootdir: str
) -> tuple[tuple[Frame, ...], list[int], list[int], tuple[LabelKind, ...]]:
    """Distinct frames, the frame that names each stack, its innermost one of the user's code, and
    what each frame is."""
    source = stacks.source or [""] * len(stacks.frames)
    files = [short_path(file, rootdir) for _, file, _ in stacks.frames]
    index: dict[tuple[str, str, LabelKind], int] = {}
    lines: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    rounds = np.array(stacks.run_last, np.int64) - np.array(stacks.run_first, np.int64)
    seen = np.bincount(stacks.run_stack, rounds, len(stacks.stacks))
    of_stack, sites = [], []

    def known(frame: int, kind: LabelKind, at: int) -> int:
        function, _, line = stacks.frames[frame]
        found = index.setdefault((function, files[frame], kind), len(index))
        lines[found][line] += int(seen[at])
        return found

    users = [not is_library_code(file) for _, file, _ in stacks.frames]
    for at, stack in enumerate(stacks.stacks):
        function, file, _ = stacks.frames[stack[-1]]
        kind = _KINDS[frame_kind(function, file, source[stack[-1]])]
        place = len(stack) - 1
        while kind == LabelKind.WAIT and place > 0 and is_plumbing(files[stack[place]]):
            place -= 1
        of_stack.append(known(stack[place], kind, at))
        site = next((one for one in reversed(stack) if users[one]), None)
        sites.append(-1 if site is None else known(site, LabelKind.CALL, at))
    names = tuple(
        Frame(function, file, max(lines[at], key=lambda line: lines[at][line]))
        for (function, file, _), at in index.items()
    )
    return names, of_stack, sites, tuple(kind for _, _, kind in index)
