"""The drafter's loss: cross-entropy over a block, the near tokens weighing more."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def decay(block: int, gamma: float) -> Tensor:
    """Return the weights ``[block]`` of the slots: 0 for the anchor's own, exp(−(k−1)/γ) after."""
    slot = torch.arange(block, dtype=torch.float32)
    return torch.where(slot >= 1, torch.exp(-(slot - 1) / gamma), 0.0)


def draft_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return Σ w·CE / Σ w, a scalar in nats.

    ``logits`` ``[N·B, V]``, ``labels`` and ``weights`` ``[N·B]``; slots of weight 0 are ignored.
    """
    entropy = functional.cross_entropy(logits.float(), labels, reduction="none")
    return (entropy * weights).sum() / weights.sum().clamp_min(1e-9)
