from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dflash.config import SIZES, Model
from dflash.masks import Layout, dense_mask
from dflash.model import Drafter, Target, exposed_layers, rotate


def tiny() -> Model:
    model = SIZES["cpu"].model
    assert model is not None
    return replace(model, width=32, heads=2, vocabulary=64, drafter_layers=2)


def test_exposed_layers_are_even_from_the_second_to_the_fourth_last() -> None:
    assert exposed_layers(12, 5) == [1, 3, 5, 7, 9]
    assert exposed_layers(6, 3) == [1, 2, 3]
    assert exposed_layers(12, 1) == [5]


def test_scores_depend_on_the_distance_of_absolute_positions_alone() -> None:
    chooser = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 1, 16, generator=chooser), torch.randn(1, 1, 16, generator=chooser)

    def score(query: int, key: int) -> float:
        turned = rotate(q, torch.tensor([query])) * rotate(k, torch.tensor([key]))
        return float(turned.sum())

    assert score(107, 100) == pytest.approx(score(7, 0), abs=1e-4)
    assert score(107, 100) != pytest.approx(score(108, 100), abs=1e-4)


def test_rotation_turns_pairs_by_position_times_frequency() -> None:
    x = torch.zeros(1, 2, 4)
    x[..., 0] = 1
    turned = rotate(x, torch.tensor([0, 3]))
    assert turned[0, 0].tolist() == [1, 0, 0, 0]
    assert turned[0, 1].tolist() == pytest.approx(
        [float(torch.cos(torch.tensor(3.0))), 0, float(torch.sin(torch.tensor(3.0))), 0]
    )


def logits(hidden: torch.Tensor, positions: list[int]) -> torch.Tensor:
    model = tiny()
    drafter = Drafter(model, Target(model))
    layout = Layout(torch.tensor([4, 9]), torch.tensor([0] * 8 + [1] * 8), 4)
    noise = torch.tensor([5, 63, 63, 63, 9, 63, 63, 63])
    mask = dense_mask(layout, None)
    with torch.no_grad():
        made: torch.Tensor = drafter(hidden, noise, torch.tensor(positions), [mask, mask])
    return made


def test_queries_see_their_context_and_positions_and_nothing_else() -> None:
    hidden = torch.randn(16, 96, generator=torch.Generator().manual_seed(1))
    places = [4, 5, 6, 7, 9, 10, 11, 12]
    before = logits(hidden, places)
    assert before.shape == (8, 64)
    seen, unseen = hidden.clone(), hidden.clone()
    seen[2] += 1
    unseen[[4, 5, 12]] += 1
    assert torch.equal(logits(unseen, places), before), "context at and after the anchors"
    after = logits(seen, places)
    assert not torch.allclose(after[:4], before[:4])
    assert torch.equal(after[4:], before[4:]), "the other document"
    assert not torch.allclose(logits(hidden, [p + 3 for p in places]), before)


def test_only_the_drafter_trains_and_copies_embedding_and_head() -> None:
    model = tiny()
    target = Target(model)
    drafter = Drafter(model, target)
    assert not any(each.requires_grad for each in target.parameters())
    assert torch.equal(drafter.embedding, target.embedding.weight)
    names = {name for name, _ in drafter.named_parameters()}
    assert "fc.weight" in names
    assert not names & {"embedding", "head"}
