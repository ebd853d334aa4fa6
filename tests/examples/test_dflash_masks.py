from __future__ import annotations

import pytest
import torch
from dflash.masks import Layout, MaskBuilder, block_mask, dense_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_mask


def oracle(
    documents: list[int], anchors: list[int], block: int, window: int | None
) -> list[list[bool]]:
    """What a query sees, key by key, from the words of the definition."""
    slots, rows = len(documents), []
    for query in range(len(anchors) * block):
        own = query // block
        anchor = anchors[own]
        row = []
        for key in range(slots + len(anchors) * block):
            if key >= slots:
                row.append((key - slots) // block == own)
            elif documents[key] != documents[anchor] or key >= anchor:
                row.append(False)
            else:
                row.append(window is None or anchor - key <= window)
        rows.append(row)
    return rows


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[int], list[int], int, int | None]:
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    real = [i for i, length in enumerate(lengths) for _ in range(length)]
    documents = real + [-1] * draw(st.integers(0, 4))
    anchors = sorted(draw(st.lists(st.integers(0, len(real) - 1), min_size=1, max_size=4)))
    return (
        documents,
        anchors,
        draw(st.integers(1, 4)),
        draw(st.one_of(st.none(), st.integers(1, 6))),
    )


def as_layout(documents: list[int], anchors: list[int], block: int) -> Layout:
    return Layout(torch.tensor(anchors), torch.tensor(documents), block)


@given(layouts())
@settings(max_examples=150, deadline=None)
def test_the_dense_mask_is_the_definition(
    case: tuple[list[int], list[int], int, int | None],
) -> None:
    documents, anchors, block, window = case
    mask = dense_mask(as_layout(documents, anchors, block), window)
    assert mask.tolist() == oracle(documents, anchors, block, window)


@pytest.mark.parametrize("window", [None, 40])
def test_the_block_mask_is_the_dense_one(window: int | None) -> None:
    documents = [0] * 70 + [1] * 90 + [-1] * 224
    layout = as_layout(documents, [0, 35, 69, 100, 150], 8)
    dense = dense_mask(layout, window)
    mask = block_mask(layout, window, compiled=False)
    whole = create_mask(mask.mask_mod, None, None, len(dense), dense.shape[1], device="cpu")[0, 0]
    assert torch.equal(whole, dense)
    # Without the mask_mod only whole blocks of 128 × 128 are known: those that hold anything.
    padded = torch.nn.functional.pad(dense, (0, -dense.shape[1] % 128, 0, -dense.shape[0] % 128))
    coarse = torch.nn.functional.max_pool2d(padded.float()[None], 128)[0].bool()
    assert mask.to_dense()[0, 0].bool().tolist() == coarse.tolist()


@pytest.mark.parametrize(
    ("masks", "eager", "windows", "built"),
    [
        (1, False, [8, 8, 8], 1),
        (2, False, [None, 8, None], 2),
        (1, True, [8, 8, 8], 3),
        (2, True, [None, 8, None], 3),
    ],
)
def test_the_builder_builds_as_often_as_the_knobs_say(
    masks: int, eager: bool, windows: list[int | None], built: int
) -> None:
    builder = MaskBuilder(3, 8, masks, eager=eager, dense=True)
    layout = as_layout([0] * 20, [3, 15], 4)
    made = builder.build(layout)
    assert builder.windows == windows
    assert builder.built == built
    for mask, window in zip(made, windows, strict=True):
        assert isinstance(mask, torch.Tensor)
        assert torch.equal(mask, dense_mask(layout, window))
