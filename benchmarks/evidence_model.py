"""A small decoder-only language model, as training code writes one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """Size of a model and of its batches."""

    layers: int
    width: int
    batch: int
    length: int
    vocabulary: int = 8192

    @property
    def tokens(self) -> int:
        """Tokens a step."""
        return self.batch * self.length


class Block(nn.Module):
    """Attention and a feed-forward layer, both residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(width // 64, 1)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, length, width) → the same."""
        batch, length, width = hidden.shape
        mixed = self.mix(self.norm1(hidden)).view(batch, length, 3, self.heads, -1)
        query, key, value = mixed.permute(2, 0, 3, 1, 4).unbind(0)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        inner: Tensor = functional.gelu(self.up(self.norm2(hidden)))
        result: Tensor = hidden + self.down(inner)
        return result


class LanguageModel(nn.Module):
    """Embedding, blocks, head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed = nn.Embedding(shape.vocabulary, shape.width)
        self.place = nn.Embedding(shape.length, shape.width)
        self.blocks = nn.ModuleList(Block(shape.width) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary)

    def hidden(self, tokens: Tensor) -> Tensor:
        """(batch, length) tokens → (batch, length, width)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden: Tensor = self.embed(tokens) + self.place(places)
        for block in self.blocks:
            hidden = block(hidden)
        return hidden

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, length) tokens → the loss of predicting each next one."""
        logits = self.head(self.norm(self.hidden(tokens)))[:, :-1]
        loss: Tensor = functional.cross_entropy(
            logits.flatten(0, 1).float(), tokens[:, 1:].flatten()
        )
        return loss
