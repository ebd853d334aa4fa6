"""Which keys a drafter's query sees: one predicate, as a dense mask or as a flex block mask.

Queries are the N·B noise slots; keys are the S context positions, then the same N·B noise slots. A
query sees the context of its own document strictly before its anchor (in a sliding layer: the last
W positions of it), and its own block in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

Mask: TypeAlias = "Tensor | BlockMask"


@dataclass(frozen=True)
class Layout:
    """What the mask depends on: ``anchors`` ``[N]``, ``document_ids`` ``[S]``, and B."""

    anchors: Tensor
    document_ids: Tensor
    block: int


def predicate(layout: Layout, window: int | None) -> Callable[[Tensor, Tensor], Tensor]:
    """Return ``sees(query, key)``, which broadcasts. ``window`` ``None`` is a full layer."""
    anchors, documents, block = layout.anchors, layout.document_ids, layout.block
    slots = len(documents)
    anchored = documents[anchors]

    def sees(query: Tensor, key: Tensor) -> Tensor:
        own = query // block
        anchor = anchors[own]
        position = key % slots
        context = (key < slots) & (position < anchor) & (documents[position] == anchored[own])
        if window is not None:
            context = context & (position >= anchor - window)
        return context | ((key >= slots) & ((key - slots) // block == own))

    return sees


def dense_mask(layout: Layout, window: int | None) -> Tensor:
    """Return the boolean mask ``[N·B, S + N·B]`` for ``scaled_dot_product_attention``."""
    queries = len(layout.anchors) * layout.block
    device = layout.anchors.device
    query = torch.arange(queries, device=device)[:, None]
    key = torch.arange(len(layout.document_ids) + queries, device=device)[None, :]
    return predicate(layout, window)(query, key)


def block_mask(layout: Layout, window: int | None, compiled: bool = True) -> BlockMask:
    """Return the mask for ``flex_attention``. Uncompiled, the dense mask is materialized first."""
    sees = predicate(layout, window)

    def mask_mod(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return sees(query, key)

    queries = len(layout.anchors) * layout.block
    keys = len(layout.document_ids) + queries
    create = _compiled_creation() if compiled else create_block_mask
    made: BlockMask = create(mask_mod, None, None, queries, keys, device=layout.anchors.device)
    return made


@cache
def _compiled_creation() -> Any:
    return torch.compile(create_block_mask, dynamic=False)


class MaskBuilder:
    """Builds the masks of one step for ``layers`` layers, as the knobs say.

    ``masks`` 1: all layers slide and share one mask; 2: full and sliding layers alternate.
    ``eager`` builds uncompiled, and without a device (dense) afresh for every layer. ``built``
    counts constructions.
    """

    def __init__(self, layers: int, window: int, masks: int, eager: bool, dense: bool) -> None:
        self.windows = [None if masks == 2 and i % 2 == 0 else window for i in range(layers)]
        self._eager, self._dense = eager, dense
        self.built = 0

    def build(self, layout: Layout) -> list[Mask]:
        """Return a mask for each layer."""
        if self._dense and self._eager:
            return [self._one(layout, window) for window in self.windows]
        made = {window: self._one(layout, window) for window in dict.fromkeys(self.windows)}
        return [made[window] for window in self.windows]

    def _one(self, layout: Layout, window: int | None) -> Mask:
        self.built += 1
        if self._dense:
            return dense_mask(layout, window)
        return block_mask(layout, window, compiled=not self._eager)
