from __future__ import annotations

from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
import torch
from dflash.config import SIZES, Model, Size
from dflash.disturbances import StepLog
from dflash.knobs import parse_knobs
from dflash.pipeline import DFlashPipeline
from dflash.recording import Unrecorded
from dflash.stages import Workshop
from dflash.training import HiddenStates, RealDrafter, RealTarget, build_real


def tiny() -> Size:
    size = SIZES["cpu"]
    assert size.model is not None
    model = replace(
        size.model,
        width=32,
        heads=2,
        vocabulary=128,
        drafter_layers=2,
    )
    return replace(size, slots=256, anchors=16, block=4, model=model)


def learning() -> Size:
    """Small, and wide enough to learn within seconds."""
    size = tiny()
    assert size.model is not None
    model = replace(
        size.model,
        width=128,
        target_layers=4,
        exposed=1,
        drafter_layers=1,
        learning_rate=4e-3,
    )
    return replace(size, anchors=32, model=model)


class Unwritten(StepLog):
    """A log that leaves the disk alone."""

    def write(self, text: str) -> None:
        self.lines += 1


@pytest.fixture
def one_thread() -> Any:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def stages(knobs: str, size: Size | None = None) -> tuple[RealTarget, RealDrafter]:
    """The stages, with a log that makes every step's loss be read and leaves the disk alone."""
    workshop = Workshop(size or tiny(), parse_knobs(knobs), Unrecorded(), Unwritten(1))
    (target,), (drafter,) = build_real(workshop)
    assert isinstance(target, RealTarget)
    assert isinstance(drafter, RealDrafter)
    return target, drafter


def item(target: RealTarget, index: int = 0) -> HiddenStates:
    return target.post(target.compute(index))


@pytest.mark.usefixtures("one_thread")
def test_the_loss_goes_down() -> None:
    target, drafter = stages("sync=each", learning())
    losses = [drafter.train(item(target, step), step).loss for step in range(1, 61)]
    read = [loss for loss in losses if loss is not None]
    assert len(read) == 60
    assert mean(read[-10:]) < 0.8 * mean(read[:5])


@pytest.mark.usefixtures("one_thread")
def test_the_same_seed_trains_the_same() -> None:
    def trained() -> list[float | None]:
        target, drafter = stages("sync=each")
        return [drafter.train(item(target, step), step).loss for step in range(1, 4)]

    assert trained() == trained()


@pytest.mark.usefixtures("one_thread")
def test_tokens_of_a_step_are_counted_by_kind() -> None:
    target, drafter = stages("")
    states = item(target)
    tokens = drafter.train(states, 1).tokens
    assert states.hidden.shape == (256, 3 * 32)
    assert tokens["slots"] == 256
    assert tokens["real"] == int((states.batch.document_ids >= 0).sum())
    assert tokens["draft"] == 16 * 4
    assert 0 < tokens["loss"] <= 16 * 3


@pytest.mark.usefixtures("one_thread")
def test_figures_are_read_together_or_one_by_one() -> None:
    for knobs, reads in (("sync=batched", 1), ("sync=each", 4)):
        target, drafter = stages(knobs)
        assert drafter.train(item(target), 1).loss is not None
        assert drafter.reads == reads


@pytest.mark.usefixtures("one_thread")
def test_masks_are_built_as_the_knobs_say() -> None:
    for knobs, built in (("", 1), ("masks=2", 2), ("mask=eager", 2), ("masks=2 mask=eager", 2)):
        target, drafter = stages(knobs)
        drafter.train(item(target), 1)
        assert drafter.masks.built == built


@pytest.mark.usefixtures("one_thread")
def test_variable_anchors_change_the_shapes_of_every_step() -> None:
    target, drafter = stages("anchors=variable")
    drafts = [drafter.train(item(target), step).tokens["draft"] for step in range(1, 5)]
    assert len(set(drafts)) == 4
    assert {stages("")[1].anchor_count(step) for step in range(1, 9)} == {16}


@pytest.mark.usefixtures("one_thread")
def test_warming_trains_nothing() -> None:
    target, drafter = stages("")
    before = [each.clone() for each in drafter.drafter.parameters()]
    drafter.warm(item(target))
    assert all(map(torch.equal, before, drafter.drafter.parameters()))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("knobs", ["", "post=sync", "docids=python_loop"])
def test_the_real_pipeline_runs_on_a_cpu(knobs: str) -> None:
    with DFlashPipeline(tiny(), parse_knobs(f"{knobs} log_every=2")) as pipeline:
        progress = pipeline.wait_for(4)
    assert progress.steps >= 4
    assert [step for step, _ in progress.losses][:2] == [2, 4]


def test_a_size_for_a_gpu_says_so_without_one() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(RuntimeError, match=r"'h200' needs a CUDA device.*DFLASH_SIZE=cpu"):
        DFlashPipeline(SIZES["h200"]).__enter__()


def test_sizes_for_gpus_are_those_of_the_contract() -> None:
    model = SIZES["h200"].model
    assert isinstance(model, Model)
    assert (model.width, model.exposed, model.drafter_layers, model.gamma) == (1024, 5, 5, 7.0)
    states = SIZES["h200"].slots * model.exposed * model.width * 2
    assert states == pytest.approx(42e6, rel=0.01), "42 MB a batch in bf16"
