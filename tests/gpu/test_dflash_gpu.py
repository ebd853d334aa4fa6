"""The example's device paths; run with ``-m gpu`` on a machine with an NVIDIA GPU."""

from __future__ import annotations

import pytest
import torch
from dflash.config import SIZES
from dflash.knobs import parse_knobs
from dflash.masks import Layout, block_mask, dense_mask
from dflash.model import attend
from dflash.pipeline import DFlashPipeline
from torch.nn.functional import scaled_dot_product_attention

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("default"),
]


@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.parametrize("compiled", [True, False])
def test_flex_attention_equals_the_dense_mask(window: int | None, compiled: bool) -> None:
    documents = torch.tensor([0] * 300 + [1] * 180 + [-1] * 32, device="cuda")
    anchors = torch.tensor([8, 40, 200, 299, 310, 479, 479, 479], device="cuda")
    layout = Layout(anchors, documents, 16)
    chooser = torch.Generator("cuda").manual_seed(3)
    q = torch.randn(4, 128, 64, device="cuda", generator=chooser, requires_grad=True)
    k, v = (
        torch.randn(4, 512 + 128, 64, device="cuda", generator=chooser, requires_grad=True)
        for _ in range(2)
    )
    flex = attend(q, k, v, block_mask(layout, window, compiled=compiled))
    dense = scaled_dot_product_attention(
        q[None], k[None], v[None], attn_mask=dense_mask(layout, window)
    )[0]
    torch.testing.assert_close(flex, dense, rtol=5e-3, atol=5e-3)
    ours = torch.autograd.grad(flex.square().sum(), (q, k, v))
    theirs = torch.autograd.grad(dense.square().sum(), (q, k, v))
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


# ``anchors=variable`` is left out: it compiles the attention anew in every step, for minutes.
@pytest.mark.parametrize(
    "knobs", ["", "post=sync sync=each mask=eager alloc=churn pin=no docids=python_loop", "masks=2"]
)
def test_the_large_size_runs_and_its_loss_is_finite(knobs: str) -> None:
    with DFlashPipeline(SIZES["h200"], parse_knobs(f"{knobs} log_every=1")) as pipeline:
        progress = pipeline.wait_for(20)
    assert progress.steps >= 20
    losses = [loss for _, loss in progress.losses]
    assert all(0 < loss < 20 for loss in losses)
    assert min(losses[-5:]) < losses[0]
