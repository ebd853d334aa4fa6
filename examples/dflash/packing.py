"""From documents to one packed sequence, and from that to the blocks a drafter is trained on.

All of it happens on the host, so that token counts are known without asking a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .data import Document

PAD_TOKEN = 0
SHORTEST_PIECE = 16


@dataclass(frozen=True)
class Batch:
    """One packed sequence: ``tokens``, ``document_ids`` (−1: pad) and ``loss_mask``, ``[S]``."""

    index: int
    tokens: Tensor
    document_ids: Tensor
    loss_mask: Tensor


@dataclass(frozen=True)
class Blocks:
    """What a drafter predicts: N blocks of B slots.

    ``anchors`` ``[N]`` are sorted positions; ``noise_ids``, ``positions``, ``labels`` and
    ``weights`` are ``[N·B]``; ``loss_tokens`` counts the labels that are not ignored.
    """

    anchors: Tensor
    noise_ids: Tensor
    positions: Tensor
    labels: Tensor
    weights: Tensor
    loss_tokens: int


def pack(index: int, documents: Sequence[Document], slots: int, docids: str) -> Batch:
    """Concatenate ``documents`` to ``slots`` tokens; the last is cut, or left out when too little
    of it would remain, and the rest is padding. ``docids`` is that knob."""
    pieces: list[Document] = []
    room = slots
    for document in documents:
        length = min(room, len(document.tokens))
        if length < min(SHORTEST_PIECE, len(document.tokens)):
            break
        pieces.append(Document(document.tokens[:length], document.loss_mask[:length]))
        room -= length
    lengths = torch.tensor([len(piece.tokens) for piece in pieces])
    real = slots - room
    tokens = torch.full((slots,), PAD_TOKEN)
    tokens[:real] = torch.cat([piece.tokens for piece in pieces])
    loss_mask = torch.zeros(slots, dtype=torch.bool)
    loss_mask[:real] = torch.cat([piece.loss_mask for piece in pieces])
    return Batch(index, tokens, DOCUMENT_IDS[docids](lengths, slots), loss_mask)


def _repeat_interleave(lengths: Tensor, slots: int) -> Tensor:
    ids = torch.full((slots,), -1)
    ids[: int(lengths.sum())] = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    return ids


def _python_loop(lengths: Tensor, slots: int) -> Tensor:
    """The slow way, one tensor write a token: what the knob stands for."""
    ids = torch.full((slots,), -1)
    position = 0
    for document, length in enumerate(lengths):
        for _ in range(int(length)):
            ids[position] = document
            position += 1
    return ids


DOCUMENT_IDS = {"repeat_interleave": _repeat_interleave, "python_loop": _python_loop}


def draw_anchors(loss_mask: Tensor, count: int, chooser: torch.Generator) -> Tensor:
    """Return ``count`` positions ``[N]`` where ``loss_mask`` is on, sorted, without repetition.

    Where there are fewer such positions some come twice, so that shapes stay fixed. Raises
    ``ValueError`` when there is none.
    """
    places = loss_mask.nonzero().flatten()
    if not len(places):
        raise ValueError("no position of the batch carries loss: nothing to anchor a block at")
    order = torch.randperm(len(places), generator=chooser)
    repeated = order.repeat(-(-count // len(places)))[:count]
    return places[repeated].sort().values


def make_blocks(batch: Batch, anchors: Tensor, decay: Tensor, mask_token: int) -> Blocks:
    """Lay the blocks over ``batch``. ``decay`` ``[B]`` are the weights of the slots.

    Slot 0 shows the anchor's token, the others MASK. A label beyond the anchor's document or
    without loss has weight 0.
    """
    slots, block = len(batch.tokens), len(decay)
    positions = anchors[:, None] + torch.arange(block)
    inside = positions.clamp(max=slots - 1)
    same = batch.document_ids[inside] == batch.document_ids[anchors][:, None]
    counted = same & batch.loss_mask[inside] & (positions < slots)
    counted[:, 0] = False
    noise = torch.full_like(positions, mask_token)
    noise[:, 0] = batch.tokens[anchors]
    return Blocks(
        anchors=anchors,
        noise_ids=noise.flatten(),
        positions=positions.flatten(),
        labels=batch.tokens[inside].flatten(),
        weights=(counted * decay).flatten(),
        loss_tokens=int(counted.sum()),
    )
