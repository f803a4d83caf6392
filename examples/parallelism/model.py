"""A small GPT, whose parameters the patterns beside it count: tied embeddings, biases, a mask."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

LAYERS, HIDDEN, SEQUENCE, VOCABULARY, BATCH = 3, 32, 16, 66, 2
HEADS = 4


class Block(nn.Module):
    """12 h² + 13 h parameters, as GPT-2's; the causal mask is a buffer, as it is there."""

    mask: torch.Tensor

    def __init__(self, hidden: int, sequence: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.project = nn.Linear(hidden, hidden)
        self.norm_2 = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)
        self.register_buffer("mask", torch.ones(sequence, sequence).tril())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, h = x.shape
        heads = self.qkv(self.norm(x)).view(b, s, 3, HEADS, h // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        scores = (query @ key.transpose(-1, -2)).masked_fill(self.mask[:s, :s] == 0, -1e9)
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(b, s, h)
        x = x + self.project(mixed)
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Gpt(nn.Module):
    """Token and position embeddings, blocks, a last norm; the head is the token embedding."""

    def __init__(
        self,
        layers: int = LAYERS,
        hidden: int = HIDDEN,
        sequence: int = SEQUENCE,
        vocabulary: int = VOCABULARY,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(sequence, hidden)
        self.blocks: Any = nn.ModuleList(Block(hidden, sequence) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.tokens(text) + self.positions.weight[: text.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def step(model: Any, optimiser: torch.optim.Optimizer, text: torch.Tensor) -> None:
    """One step of training on texts of (batch, sequence) tokens."""
    optimiser.zero_grad()
    scores = model(text)[:, :-1].flatten(0, 1)
    functional.cross_entropy(scores, text[:, 1:].flatten()).backward()
    optimiser.step()
