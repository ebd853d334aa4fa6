"""From the evidence of one session to its table of causes: decode, name, fit, replay, price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.causes import CauseTable

from .call_sites import CallSite, call_sites, with_call_sites
from .cause_table import cause_table
from .gap_classes import StackSamples, name_gaps
from .host_factor import Canary, fit_host
from .replay_decode import decode
from .replay_program import Labels, QueueOps
from .timeline import Timeline
from .whatif import what_if


@dataclass(frozen=True, slots=True)
class StepEvidence:
    """What a session recorded of its steps.

    ``timing_step_ms`` is the timing pass; ``main_thread`` indexes ``timeline.threads``: the one
    whose marks count. ``canary`` was traced in the same evidence pass. ``lane_speeds`` (thread,
    speed) are those of threads whose pace is recorded in both passes
    (``queue_marks.producer_speeds`` gives them by lane); ``queue_waits_ms`` is the time in queue
    calls in the timing pass (``queue_marks.queue_waits_ms``).
    """

    timeline: Timeline
    timing_step_ms: float
    samples: StackSamples | None = None
    queues: QueueOps | None = None
    main_thread: int | None = None
    canary: Canary | None = None
    lane_speeds: tuple[tuple[int, float], ...] = ()
    gil_share: float = 1.0
    queue_waits_ms: Mapping[int, float] | None = None


def explain_step(evidence: StepEvidence) -> CauseTable | Unavailable:
    """Build the table of causes of one session; ``Unavailable`` where its trace cannot be replayed.

    Whether the trace is complete (launches matched, nothing dropped) is the caller's to check.
    """
    timeline, queues, main = evidence.timeline, evidence.queues, evidence.main_thread
    if timeline.window.steps < 1 or timeline.window.wall_ns <= 0:
        return Unavailable("the traced window holds no step", "measure more steps")
    try:
        decoded = decode(timeline, Labels.none(), queues, main)
    except ValueError as error:
        return Unavailable(str(error), "trace CUDA activities in the evidence pass")
    program = decoded.program
    sites: dict[tuple[str, str], CallSite] = {}
    if evidence.samples is not None:
        sites = call_sites(decoded, evidence.samples, timeline)
        labels = name_gaps(decoded, evidence.samples, timeline.window)
        program = decode(timeline, labels, queues, main).program
    fit = fit_host(program, evidence.canary, evidence.timing_step_ms, evidence.gil_share)
    model = replace(fit.model, lane_speed=evidence.lane_speeds)
    what = what_if(program, model, evidence.timing_step_ms, evidence.gil_share)
    table = cause_table(
        timeline, program, evidence.timing_step_ms, fit, what, evidence.queue_waits_ms
    )
    return with_call_sites(table, sites)
