from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from dflash import pipeline as pipeline_module
from dflash.config import SIZES, Size, Timing
from dflash.knobs import parse_knobs
from dflash.pipeline import DFlashPipeline
from dflash.simulated import SimulatedStates
from dflash.stages import DrafterStage, TargetStage, Trained, Workshop

from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.recorder import Recorder


def quick(**timing: Any) -> Size:
    """The simulated size, thirty times as fast."""
    times: dict[str, Any] = {
        "target_ms": 1.0, "post_ms": 0.2, "drafter_ms": 0.5, "stall_ms": 10.0,
        "item_ms": 0.1, "eager_mask_ms": 0.3, "docids_ms": 0.1, "recompile_ms": 0.5,
        "churn_ms": 0.1, "unpinned_ms": 0.1,
    }  # fmt: skip
    return replace(SIZES["simulated"], timing=Timing(**{**times, **timing}))


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread.name for thread in threading.enumerate() if thread not in before]
    assert not left


def test_it_runs_until_it_is_left() -> None:
    with DFlashPipeline(quick(), parse_knobs("log_every=10")) as pipeline:
        progress = pipeline.wait_for(60)
        names = {thread.name for thread in threading.enumerate()}
    assert progress.steps >= 60
    assert progress.tokens["real"] == 1024 * progress.steps
    assert {"target-4", "post-4", "drafter-2"} <= names
    assert pipeline.log.lines >= 3


def test_a_recorder_sees_workers_marks_and_the_queue() -> None:
    recorder = Recorder(SystemClock())
    with DFlashPipeline(quick(), recorder=recorder) as pipeline:
        pipeline.wait_for(40)
    marks = {one.worker: one for one in recorder.mark_series("real")}
    assert set(marks) >= {"target-0", "post-0", "drafter-0"}
    assert marks["drafter-0"].counts
    assert not marks["target-0"].counts
    assert marks["drafter-0"].device == "sim:5"
    assert set(marks["drafter-0"].tokens) == {"slots", "real", "loss", "draft"}
    queues = {(one.queue, one.side): one for one in recorder.queue_series()}
    assert queues["hidden-states", "get"].capacity == 60
    assert queues["hidden-states", "get"].low_water == 10
    assert not [stream for stream in recorder.streams() if stream.error is not None]


def test_post_processing_moves_onto_the_targets_path() -> None:
    recorder = Recorder(SystemClock())
    with DFlashPipeline(quick(), parse_knobs("post=sync"), recorder) as pipeline:
        pipeline.wait_for(20)
        names = {thread.name for thread in threading.enumerate()}
    assert not [name for name in names if name.startswith("post")]
    assert {("stage", "post")} == {(one.kind, one.name) for one in recorder.span_series()}


def test_busy_threads_are_started_and_ended() -> None:
    with DFlashPipeline(quick(), parse_knobs("spin=2")) as pipeline:
        names = {thread.name for thread in threading.enumerate()}
        pipeline.wait_for(5)
    assert {"spin-0", "spin-1"} <= names


def test_garbage_lives_only_while_the_pipeline_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash.disturbances.Garbage.LIVE", 1000)
    with DFlashPipeline(quick(), parse_knobs("gc=heavy")) as pipeline:
        pipeline.wait_for(5)
        assert pipeline.garbage is not None
        assert len(pipeline.garbage.live) == 1000
    assert pipeline.garbage is None


class Failing:
    """A stage of either kind that fails at a step; every other one waits for nobody."""

    device = "fake:0"

    def __init__(self, where: str) -> None:
        self._where = where

    def warm(self, item: object = None) -> None:
        """Nothing to do."""

    def compute(self, index: int) -> SimulatedStates:
        if self._where == "compute" and index > 4:
            raise ArithmeticError("in compute")
        return SimulatedStates(index, 0)

    def post(self, computed: SimulatedStates) -> SimulatedStates:
        if self._where == "post" and computed.index > 4:
            raise ArithmeticError("in post")
        return computed

    def train(self, item: SimulatedStates, step: int) -> Trained:
        if self._where == "train" and step > 4:
            raise ArithmeticError("in train")
        return Trained({"real": 1})


@pytest.mark.parametrize("knobs", ["post=async", "post=sync"])
@pytest.mark.parametrize("where", ["compute", "post", "train"])
def test_what_a_worker_raises_is_raised_on_leaving(
    where: str, knobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Workshop) -> tuple[list[TargetStage], list[DrafterStage]]:
        return [Failing(where)], [Failing(where), Failing("nowhere")]

    monkeypatch.setattr(pipeline_module, "build_stages", failing)
    recorder = Recorder(SystemClock())
    size = replace(quick(), targets=1, drafters=2)
    with (
        pytest.raises(ArithmeticError, match=f"in {where}"),
        DFlashPipeline(size, parse_knobs(knobs), recorder) as pipeline,
    ):
        pipeline.wait_for(10**9)
    failed = [stream.name for stream in recorder.streams() if stream.error is not None]
    assert len(failed) == 1


def test_an_error_of_the_block_is_not_hidden_by_a_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: Workshop) -> tuple[list[TargetStage], list[DrafterStage]]:
        return [Failing("compute")], [Failing("nowhere")]

    monkeypatch.setattr(pipeline_module, "build_stages", failing)
    size = replace(quick(), targets=1, drafters=1)

    def run() -> None:
        with DFlashPipeline(size) as pipeline:
            pipeline.wait_for(10**9)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run()


def test_an_error_while_warming_starts_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def cold(_: Workshop) -> tuple[list[TargetStage], list[DrafterStage]]:
        raise OSError("no device")

    monkeypatch.setattr(pipeline_module, "build_stages", cold)
    with pytest.raises(OSError, match="no device"):
        DFlashPipeline(quick()).__enter__()


def test_a_worker_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    release, began = threading.Event(), threading.Event()

    class Stuck(Failing):
        def train(self, item: SimulatedStates, step: int) -> Trained:
            began.set()
            release.wait(30)
            return Trained({"real": 1})

    def stuck(_: Workshop) -> tuple[list[TargetStage], list[DrafterStage]]:
        return [Failing("nowhere")], [Stuck("nowhere")]

    monkeypatch.setattr(pipeline_module, "build_stages", stuck)
    monkeypatch.setattr(pipeline_module, "JOIN_TIMEOUT_S", 0.05)
    size = replace(quick(), targets=1, drafters=1)
    before = set(threading.enumerate())
    stuck_error = pytest.raises(RuntimeError, match=r"did not end within 0\.05 s.*drafter-0")
    with stuck_error, DFlashPipeline(size):
        assert began.wait(30)
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)


def test_waiting_for_too_many_steps_times_out() -> None:
    with (
        pytest.raises(TimeoutError, match=r"of 1000000 steps within 0\.01 s"),
        DFlashPipeline(quick()) as pipeline,
    ):
        pipeline.wait_for(1_000_000, timeout_s=0.01)
