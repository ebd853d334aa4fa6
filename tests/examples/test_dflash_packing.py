from __future__ import annotations

import pytest
import torch
from dflash.data import Document, DocumentStream
from dflash.loss import decay
from dflash.packing import PAD_TOKEN, Batch, draw_anchors, make_blocks, pack
from hypothesis import given, settings
from hypothesis import strategies as st


def documents(*lengths: int) -> list[Document]:
    """Documents of distinct tokens; the first token of each carries no loss."""
    made, first = [], 1
    for length in lengths:
        mask = torch.ones(length, dtype=torch.bool)
        mask[0] = False
        made.append(Document(torch.arange(first, first + length), mask))
        first += length
    return made


def test_documents_stand_one_after_another() -> None:
    batch = pack(7, documents(20, 30), 60, "repeat_interleave")
    assert batch.index == 7
    assert batch.tokens.tolist() == [*range(1, 51), *[PAD_TOKEN] * 10]
    assert batch.document_ids.tolist() == [0] * 20 + [1] * 30 + [-1] * 10
    assert batch.loss_mask.tolist() == [False, *[True] * 19, False, *[True] * 29, *[False] * 10]


def test_the_last_document_is_cut_unless_too_little_would_remain() -> None:
    cut = pack(0, documents(20, 30), 40, "repeat_interleave")
    assert cut.document_ids.tolist() == [0] * 20 + [1] * 20
    left_out = pack(0, documents(20, 30), 30, "repeat_interleave")
    assert left_out.document_ids.tolist() == [0] * 20 + [-1] * 10


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(40, 100))
@settings(max_examples=60, deadline=None)
def test_both_ways_to_document_ids_agree(lengths: list[int], slots: int) -> None:
    quick = pack(0, documents(*lengths), slots, "repeat_interleave")
    slow = pack(0, documents(*lengths), slots, "python_loop")
    assert torch.equal(quick.document_ids, slow.document_ids)


@given(st.lists(st.booleans(), min_size=1, max_size=50).filter(any), st.integers(1, 20))
@settings(max_examples=80, deadline=None)
def test_anchors_are_sorted_and_carry_loss(mask: list[bool], count: int) -> None:
    anchors = draw_anchors(torch.tensor(mask), count, torch.Generator().manual_seed(1)).tolist()
    assert anchors == sorted(anchors)
    assert len(anchors) == count
    assert all(mask[anchor] for anchor in anchors)
    assert len(set(anchors)) == min(count, sum(mask))


def test_without_loss_there_is_nothing_to_anchor() -> None:
    with pytest.raises(ValueError, match="carries loss"):
        draw_anchors(torch.zeros(4, dtype=torch.bool), 2, torch.Generator())


@given(st.lists(st.integers(16, 40), min_size=1, max_size=4), st.integers(1, 9), st.data())
@settings(max_examples=60, deadline=None)
def test_blocks_are_their_definition(lengths: list[int], block: int, data: st.DataObject) -> None:
    batch = pack(0, documents(*lengths), 100, "repeat_interleave")
    places = [i for i, on in enumerate(batch.loss_mask.tolist()) if on]
    anchors = sorted(data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=5)))
    weights = decay(block, 4.0)
    blocks = make_blocks(batch, torch.tensor(anchors), weights, mask_token=999)
    ids, tokens = batch.document_ids.tolist(), batch.tokens.tolist()
    loss = 0
    for n, anchor in enumerate(anchors):
        for k in range(block):
            slot, place = n * block + k, anchor + k
            assert blocks.positions[slot] == place
            assert blocks.noise_ids[slot] == (tokens[anchor] if k == 0 else 999)
            counted = k > 0 and place < 100 and ids[place] == ids[anchor] and place in places
            assert blocks.weights[slot] == (weights[k] if counted else 0)
            if counted:
                assert blocks.labels[slot] == tokens[place]
                loss += 1
    assert blocks.loss_tokens == loss


def test_a_batch_is_the_same_whoever_asks_for_it() -> None:
    def packed(index: int) -> Batch:
        return pack(index, DocumentStream(256, seed=5).batch(index, 300), 300, "repeat_interleave")

    assert torch.equal(packed(3).tokens, packed(3).tokens)
    assert not torch.equal(packed(3).tokens, packed(4).tokens)
    assert int(packed(3).tokens.max()) < 255, "the last id is the MASK token"
