from __future__ import annotations

import math

import pytest
import torch
from dflash.loss import decay, draft_loss


def test_weights_fall_from_the_first_predicted_slot_on() -> None:
    weights = decay(16, 7.0).tolist()
    assert weights[0] == 0
    assert weights[1:] == pytest.approx([math.exp(-(k - 1) / 7) for k in range(1, 16)])


def test_the_loss_is_the_weighted_mean_of_the_cross_entropies() -> None:
    chooser = torch.Generator().manual_seed(0)
    logits = torch.randn(12, 5, generator=chooser)
    labels = torch.randint(0, 5, (12,), generator=chooser)
    weights = torch.rand(12, generator=chooser)
    weights[4] = 0
    total = weight = 0.0
    for row, label, share in zip(logits.tolist(), labels.tolist(), weights.tolist(), strict=True):
        entropy = math.log(sum(math.exp(value) for value in row)) - row[label]
        total, weight = total + share * entropy, weight + share
    assert float(draft_loss(logits, labels, weights)) == pytest.approx(total / weight, rel=1e-5)


def test_slots_without_weight_change_nothing() -> None:
    logits = torch.tensor([[1.0, 2.0], [50.0, -50.0]])
    labels = torch.tensor([0, 1])
    alone = draft_loss(logits[:1], labels[:1], torch.tensor([0.5]))
    assert torch.equal(draft_loss(logits, labels, torch.tensor([0.5, 0.0])), alone)


def test_a_batch_without_any_label_has_no_loss_and_no_nan() -> None:
    assert float(draft_loss(torch.ones(2, 3), torch.tensor([0, 1]), torch.zeros(2))) == 0
