"""The replay and the growth on recordings of an H200, against their unprofiled truth."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_tokbudget.analysis.call_sites import call_sites
from pytest_tokbudget.analysis.cause_table import cause_table
from pytest_tokbudget.analysis.gap_classes import StackSamples, name_gaps
from pytest_tokbudget.analysis.growth import growth_findings
from pytest_tokbudget.analysis.host_factor import Canary, fit_host
from pytest_tokbudget.analysis.replay_cause import ReplayCause
from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_program import Frame, LabelKind, Program
from pytest_tokbudget.analysis.timeline import Timeline, Window
from pytest_tokbudget.analysis.trace_rows import KnownThread, timeline_from_rows
from pytest_tokbudget.analysis.whatif import what_if
from pytest_tokbudget.records.causes import CauseTable

EVIDENCE = Path(__file__).parents[1] / "data" / "evidence"
FILES = {
    **dict.fromkeys(("none", "cache"), "h200_launch_cuda"),
    **dict.fromkeys(("python", "sleep", "copy"), "h200_launch_cuda_faults"),
}
FAULTS = ("none", "cache", "python", "sleep", "copy")


@cache
def meta_of(fault: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EVIDENCE / f"{FILES[fault]}.json").read_text())
    return found


@cache
def recorded(fault: str) -> Timeline:
    meta = meta_of(fault)
    with np.load(EVIDENCE / f"{FILES[fault]}.npz") as file:
        rows = np.cumsum(file["delta"].T, axis=0)
    rows = rows[rows[:, 0] == meta["faults"].index(fault)]
    threads = [KnownThread(*one) for one in meta["threads"]]
    return timeline_from_rows(rows, tuple(meta["names"]), threads, Window(*meta["windows"][fault]))


def samples_of(fault: str) -> StackSamples | None:
    """Samples of the main thread while it was traced, if there were any."""
    meta = meta_of(fault)
    if "samples" not in meta:
        return None
    frames = tuple(Frame(*one) for one in meta["frames"])
    return StackSamples(
        thread=np.zeros(len(meta["samples"]), np.int32),
        time_ns=np.array([one[0] for one in meta["samples"]], np.int64),
        frame=np.array([one[1] for one in meta["samples"]], np.int32),
        frames=frames,
        # The recordings hold no thread states: that ``nap`` sleeps is known from its source.
        kinds=tuple(
            LabelKind.SLEEP if one.function == "nap" else LabelKind.PYTHON for one in frames
        ),
    )


@cache
def program(fault: str) -> Program:
    timeline, samples = recorded(fault), samples_of(fault)
    decoded = decode(timeline)
    if samples is None:
        return decoded.program
    return decode(timeline, name_gaps(decoded, samples, timeline.window)).program


@pytest.mark.parametrize(
    ("fault", "lines"),
    [("copy", {("MainThread", "copies"): ("copy_out", "train.py", 40)}), ("python", {})],
)
def test_the_line_of_a_blocking_call_is_that_of_the_samples_inside_it(
    fault: str, lines: dict[tuple[str, str], tuple[str, str, int]]
) -> None:
    samples = samples_of(fault)
    assert samples is not None
    found = call_sites(decode(recorded(fault)), samples, recorded(fault))
    assert {key: site.frame for key, site in found.items()} == {
        key: Frame(*line) for key, line in lines.items()
    }


def unprofiled_ms(fault: str) -> list[float]:
    found: list[float] = meta_of(fault)["clean_ms_per_step"][fault]
    return found


def canary() -> Canary:
    return Canary(program("none"), float(np.mean(unprofiled_ms("none"))))


@cache
def studied(fault: str) -> CauseTable:
    step_ms = float(np.mean(unprofiled_ms(fault)))
    fit = fit_host(program(fault), canary())
    what = what_if(program(fault), fit.model, step_ms)
    assert abs(what.identity) < 0.01
    return cause_table(recorded(fault), program(fault), step_ms, fit, what)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_replayed_step_is_within_ten_per_cent_of_the_unprofiled_range(fault: str) -> None:
    clean, replayed = unprofiled_ms(fault), studied(fault).replayed_step_ms
    assert replayed is not None
    assert 0.9 * min(clean) <= replayed <= 1.1 * max(clean)


@pytest.mark.parametrize(
    ("fault", "cause", "injected_ms"),
    [
        ("python", "python: collate_slow", 3.0),
        ("sleep", "sleep", 3.0),
        ("cache", "allocator", None),
        ("copy", "copies", None),
    ],
)
def test_growth_finds_the_injected_cause_first(
    fault: str, cause: str, injected_ms: float | None
) -> None:
    first = growth_findings(studied(fault), studied("none"))[0]
    assert first.cause == cause
    truth = injected_ms or float(np.mean(np.subtract(unprofiled_ms(fault), unprofiled_ms("none"))))
    # Launch-bound: the truth's own host wandered by up to 35 % between repeats.
    assert first.delta_ms_per_step == pytest.approx(truth, rel=0.4)


@pytest.mark.parametrize(
    ("fault", "cause", "least_ms", "most_ms"),
    [
        ("python", ReplayCause.PYTHON, 2.4, 3.6),
        # All samples of the gap's class agree, so all of its 3.8 ms bear the name.
        ("sleep", ReplayCause.SLEEP, 2.4, 3.9),
        ("cache", ReplayCause.ALLOCATOR, 2.0, 5.0),
        ("copy", ReplayCause.COPY, 19.0, 23.0),
    ],
)
def test_what_if_prices_the_injected_cause(
    fault: str, cause: ReplayCause, least_ms: float, most_ms: float
) -> None:
    rows = [one for one in studied(fault).causes if one.cause == cause.value]
    assert least_ms <= sum(one.what_if_ms or 0.0 for one in rows) <= most_ms


def test_kernel_time_is_the_same_whatever_else_the_step_does() -> None:
    busy = [studied(fault).devices[0].busy_ms for fault in FAULTS]
    # Two of the windows are cut short where the host was ahead of the device.
    assert max(busy) / min(busy) < 1.025


def test_spacing_of_queued_kernels_is_about_a_microsecond() -> None:
    spacing = np.median(program("none").device.spacing_ns)
    assert 900 < spacing < 1_200
