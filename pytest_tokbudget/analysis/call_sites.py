"""Which line made the calls that block: the Python of a thread while it stood in them.

A trace of CUDA calls knows the thread and the moments of a copy, a synchronization, an allocation;
samples of that thread's stack in those very moments know the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ..records.causes import CauseMs, CauseTable
from .gap_classes import LEAST_CLASS_NS, StackSamples
from .intervals import interval_of
from .replay_cause import ReplayCause
from .replay_decode import Decoded
from .replay_program import CallKind, Frame
from .timeline import Timeline

BLOCKING = {
    ReplayCause.COPY: CallKind.COPY,
    ReplayCause.ALLOCATOR: CallKind.ALLOC,
    ReplayCause.SYNC: CallKind.SYNC,
}


class CallSite(NamedTuple):
    """The user's line that made most of the calls, and how many samples agree on its function."""

    frame: Frame
    samples: int


def call_sites(
    decoded: Decoded, samples: StackSamples, timeline: Timeline
) -> dict[tuple[str, str], CallSite]:
    """By name of thread and cause, where at least 60 % of at least three samples agree on a
    function.

    Only calls of at least ``LEAST_CLASS_NS`` count: at the clocks' uncertainty a sample tells
    nothing of a shorter one.
    """
    events = decoded.events
    long = events.end_ns - events.start_ns >= LEAST_CLASS_NS
    found = {}
    for lane, thread in enumerate(events.threads):
        mine = np.arange(*np.searchsorted(events.lane, (lane, lane + 1)))
        kinds = decoded.program.host.kind[mine + lane]  # each lane before has a tail
        of_thread = np.flatnonzero(samples.thread == thread)
        times = samples.time_ns[of_thread]
        for cause, kind in BLOCKING.items():
            calls = mine[(kinds == kind) & long[mine]]
            inside = interval_of(times, events.start_ns[calls], events.end_ns[calls]) >= 0
            agreed = samples.agreed_site(of_thread[inside])
            if agreed is not None:
                site = CallSite(samples.frames[agreed.frame], agreed.agreeing)
                found[timeline.threads[thread].name, cause.value] = site
    return found


def with_call_sites(table: CauseTable, sites: Mapping[tuple[str, str], CallSite]) -> CauseTable:
    """Return ``table``, causes of calls that block with the line that made most of them."""

    def placed(cause: CauseMs) -> CauseMs:
        site = sites.get((cause.thread or "", cause.cause))
        if site is None:
            return cause
        frame = site.frame
        return replace(cause, file=frame.file, line=frame.line, samples=site.samples)

    return replace(table, causes=[placed(one) for one in table.causes])
