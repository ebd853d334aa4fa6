"""Which line made a blocking call: samples inside the calls, and nothing else, tell."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_tokbudget.analysis.call_sites import CallSite, call_sites, with_call_sites
from pytest_tokbudget.analysis.gap_classes import StackSamples
from pytest_tokbudget.analysis.growth import growth_findings
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_program import Frame, LabelKind
from pytest_tokbudget.records.causes import CauseMs, CauseTable, DeviceMs
from tests.trace_builder import TraceBuilder

STEPS, STEP_NS = 5, 4_000_000
READ, LOG = Frame("read", "train.py", 7), Frame("log", "train.py", 20)
LIBRARY = Frame("synchronize", "torch/cuda/streams.py", 254)


def sites(
    at_ns: int, site: list[int], *, call_ns: int = 2_000_000
) -> dict[tuple[str, str], CallSite]:
    """Of a thread that reads the device ``call_ns`` long in each step, sampled once a step."""
    trace = TraceBuilder()
    for step in range(STEPS):
        trace.launch(step * STEP_NS + 10_000, step * STEP_NS + 20_000, 5_000)
        trace.call("cudaStreamSynchronize", step * STEP_NS + 1_000_000, call_ns)
    timeline = trace.timeline(0, STEPS * STEP_NS, steps=STEPS)
    samples = StackSamples(
        thread=np.zeros(len(site), np.int32),
        time_ns=trace.begin_ns + np.arange(len(site)) * STEP_NS + at_ns,
        frame=np.full(len(site), 2, np.int32),
        frames=(READ, LOG, LIBRARY),
        kinds=(LabelKind.CALL, LabelKind.CALL, LabelKind.PYTHON),
        site=np.array(site, np.int32),
    )
    return call_sites(decode(timeline), samples, timeline)


def test_the_users_line_of_most_samples_inside_the_calls_is_named() -> None:
    (found,) = sites(2_000_000, [0, 0, 0, 1, 0]).items()
    (_, cause), site = found
    assert (cause, site) == ("synchronization", CallSite(READ, 4))


@pytest.mark.parametrize(
    ("at_ns", "site", "call_ns"),
    [
        (3_500_000, [0] * 5, 2_000_000),
        (2_000_000, [0, 0], 2_000_000),
        (2_000_000, [0, 0, 1, 1, -1], 2_000_000),
        (2_000_000, [-1] * 5, 2_000_000),
        (1_050_000, [0] * 5, 100_000),
    ],
    ids=["beside the calls", "too few", "two lines", "no user's code", "calls too short"],
)
def test_without_enough_agreeing_samples_inside_no_line_is_named(
    at_ns: int, site: list[int], call_ns: int
) -> None:
    assert sites(at_ns, site, call_ns=call_ns) == {}


def test_a_finding_has_the_line_and_is_the_same_cause_as_one_without() -> None:
    def table(step_ms: float, sync_ms: float) -> CauseTable:
        sync = CauseMs(
            cause="synchronization", thread="main", devices=["cuda:0"], direct_ms=sync_ms
        )
        device = DeviceMs(device="cuda:0", busy_ms=1.0)
        return CauseTable(step_ms=step_ms, traced_step_ms=step_ms, devices=[device], causes=[sync])

    now = with_call_sites(table(9.0, 5.0), {("main", "synchronization"): CallSite(READ, 4)})
    (found,) = growth_findings(now, table(6.0, 2.0))
    assert (found.cause, found.file, found.line, found.samples) == (
        "synchronization",
        "train.py",
        7,
        4,
    )
    assert found.delta_ms_per_step == pytest.approx(3.0)
