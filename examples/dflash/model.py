"""The frozen target and the drafter. Batch size is 1 and not written: sequences are ``[S, D]``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention

from .config import Model
from .masks import Mask


class RMSNorm(nn.Module):
    """Scale to unit root mean square over the last dimension, in float32, and by a weight."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (scaled * self.weight).to(x.dtype)


def rotate(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """Rotate ``x`` ``[H, n, d]`` by its absolute ``positions`` ``[n]`` (RoPE, arXiv:2104.09864)."""
    half = x.shape[-1] // 2
    frequency = base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = positions.float()[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)
    return turned.to(x.dtype)


class Feed(nn.Module):
    """SwiGLU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = width * 8 // 3 // 8 * 8
        self.up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.up(x).chunk(2, dim=-1)
        down: Tensor = self.down(functional.silu(gate) * value)
        return down


class TargetLayer(nn.Module):
    """A pre-norm decoder layer, causal over the packed sequence."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = RMSNorm(width), RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.feed = Feed(width)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        q, k, v = (split(part, self.heads) for part in self.qkv(self.before(x)).chunk(3, dim=-1))
        q, k = rotate(q, positions), rotate(k, positions)
        seen = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)
        x = x + self.out(join(seen[0]))
        grown: Tensor = x + self.feed(self.between(x))
        return grown


def exposed_layers(layers: int, exposed: int) -> list[int]:
    """Return the A layers whose outputs are handed on: evenly from layer 1 to layer L−3."""
    if exposed == 1:
        return [(1 + layers - 3) // 2]
    return [round(1 + i * (layers - 4) / (exposed - 1)) for i in range(exposed)]


class Target(nn.Module):
    """A frozen decoder with random weights that exposes A hidden states."""

    def __init__(self, model: Model, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(model.vocabulary, model.width)
            self.layers = nn.ModuleList(
                TargetLayer(model.width, model.heads) for _ in range(model.target_layers)
            )
            self.head = nn.Linear(model.width, model.vocabulary, bias=False)
        self.exposed = exposed_layers(model.target_layers, model.exposed)
        self.requires_grad_(False)

    def forward(self, tokens: Tensor) -> list[Tensor]:
        """Return A hidden states ``[S, D]``. Layers after the last exposed one are run as well."""
        positions = torch.arange(len(tokens), device=tokens.device)
        x = self.embedding(tokens)
        outputs = []
        for layer in self.layers:
            x = layer(x, positions)
            outputs.append(x)
        return [outputs[i] for i in self.exposed]


class DraftLayer(nn.Module):
    """Queries from the noise alone; keys and values from [context ‖ noise]; QK-norm and RoPE."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = RMSNorm(width), RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.query_norm, self.key_norm = RMSNorm(width // heads), RMSNorm(width // heads)
        self.out = nn.Linear(width, width, bias=False)
        self.feed = Feed(width)

    def forward(
        self, noise: Tensor, context: Tensor, places: tuple[Tensor, Tensor], mask: Mask
    ) -> Tensor:
        query_places, key_places = places
        normed = self.before(noise)
        q = split(self.query(normed), self.heads)
        k, v = self.key_value(torch.cat((context, normed))).chunk(2, dim=-1)
        k, v = split(k, self.heads), split(v, self.heads)
        q = rotate(self.query_norm(q), query_places)
        k = rotate(self.key_norm(k), key_places)
        noise = noise + self.out(join(attend(q, k, v, mask)))
        grown: Tensor = noise + self.feed(self.between(noise))
        return grown


class Drafter(nn.Module):
    """The trained model. Embedding and head are frozen copies of the target's."""

    def __init__(self, model: Model, target: Target, seed: int = 1) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.fc = nn.Linear(model.exposed * model.width, model.width, bias=False)
            self.context_norm, self.final_norm = RMSNorm(model.width), RMSNorm(model.width)
            self.layers = nn.ModuleList(
                DraftLayer(model.width, model.heads) for _ in range(model.drafter_layers)
            )
        self.register_buffer("embedding", target.embedding.weight.detach().float().clone())
        self.register_buffer("head", target.head.weight.detach().float().clone())
        self.embedding: Tensor
        self.head: Tensor

    def forward(
        self, hidden: Tensor, noise_ids: Tensor, positions: Tensor, masks: Sequence[Mask]
    ) -> Tensor:
        """Return logits ``[N·B, V]`` from ``hidden`` ``[S, A·D]`` and the blocks' noise ids."""
        context = self.context_norm(self.fc(hidden))
        noise = functional.embedding(noise_ids, self.embedding).to(context.dtype)
        places = torch.cat((torch.arange(len(hidden), device=hidden.device), positions))
        for layer, mask in zip(self.layers, masks, strict=True):
            noise = layer(noise, context, (positions, places), mask)
        return functional.linear(self.final_norm(noise), self.head)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """Attention of ``[H, n, d]`` under ``mask``: dense through SDPA, else flex_attention."""
    q, k = q.to(v.dtype), k.to(v.dtype)
    if isinstance(mask, Tensor):
        return functional.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask)[0]
    flex = _compiled_flex() if q.is_cuda else flex_attention
    seen: Tensor = flex(q[None], k[None], v[None], block_mask=mask)
    return seen[0]


@cache
def _compiled_flex() -> Any:
    return torch.compile(flex_attention, dynamic=False)


def split(x: Tensor, heads: int) -> Tensor:
    """``[n, H·d]`` → ``[H, n, d]``."""
    return x.view(*x.shape[:-1], heads, -1).transpose(0, 1)


def join(x: Tensor) -> Tensor:
    """``[H, n, d]`` → ``[n, H·d]``."""
    return x.transpose(0, 1).flatten(1)
