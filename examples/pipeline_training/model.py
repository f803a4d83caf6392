"""A small byte-level transformer, cut into the stages of a pipeline."""

from __future__ import annotations

import torch
from torch import nn

BYTES = 256


class Block(nn.Module):
    """Causal attention and a feed-forward layer, each with a residual: [b, s, d] to [b, s, d]."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class Embedding(nn.Module):
    """Bytes and their places: int64 [b, s] to [b, s, d]."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.bytes, self.places = nn.Embedding(BYTES, width), nn.Embedding(length, width)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.bytes(text) + self.places.weight[: text.shape[1]]


def make_stages(
    count: int, layers: int, *, width: int = 64, heads: int = 4, length: int = 32, seed: int = 0
) -> list[nn.Sequential]:
    """The model in `count` parts of equal numbers of layers, with the same weights everywhere.

    One after the other they go from bytes, int64 [b, s], to logits of the next ones, [b, s, 256].
    """
    torch.manual_seed(seed)
    first = Embedding(width, length)
    blocks = [Block(width, heads) for _ in range(layers)]
    last = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, BYTES))
    each = layers // count
    stages = [nn.Sequential(*blocks[at : at + each]) for at in range(0, layers, each)]
    stages[0].insert(0, first)
    stages[-1].append(last)
    return stages
