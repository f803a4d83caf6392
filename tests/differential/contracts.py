"""Contracts for random patterns: what the model says a row of y holds at the end, or else.

A row is looked for among the rows that all ranks had at first and their reductions; the model runs
on several data, so that none is found by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from tests.differential.memory import initial, reduced
from tests.differential.model import Model

if TYPE_CHECKING:
    from random import Random

    from tests.differential.generate import Pattern
    from tests.differential.script import Script

SEEDS = (101, 102, 103)
"""Data of the models; the ranks run on others."""
_ENOUGH = 64
"""So many elements of a row tell it from all others."""
_LEAST = 4

Rows = dict[str, list[torch.Tensor]]
"""By expression, a row on each of the models' data."""


def contracts(pattern: Pattern, scripts: list[Script], random: Random) -> list[str]:
    """Up to three `ensure` lines, about one in five of which is wrong."""
    if pattern.n < _LEAST:
        return []
    ends = [Model(scripts, seed).tensors for seed in SEEDS]
    known = _candidates(pattern)
    by_value: dict[tuple[bytes, ...], str] = {}
    for text, rows in known.items():
        by_value.setdefault(_key(rows), text)
    lines: list[str] = []
    for _ in range(3):
        rank, row = random.randrange(pattern.world), random.randrange(max(1, pattern.rows))
        have = _key([_row(end[rank]["y"], row, pattern.n) for end in ends])
        right = by_value.get(have)
        if right is None:
            continue
        value = random.choice(list(known)) if random.random() < 0.2 else right
        line = f"ensure y[{row}] @ {rank} == {value}"
        if line not in lines:
            lines.append(line)
    return lines


def _row(flat: torch.Tensor, row: int, n: int) -> torch.Tensor:
    return flat[row * n : row * n + min(n, _ENOUGH)]


def _key(rows: list[torch.Tensor]) -> tuple[bytes, ...]:
    return tuple(row.contiguous().view(torch.uint8).numpy().tobytes() for row in rows)


def _candidates(pattern: Pattern) -> Rows:
    """Every row of every rank at first, and reductions of them over the world and the groups."""
    found: Rows = {}
    sizes = {"x": 2 * pattern.world, "y": max(1, pattern.rows)}
    everyone = tuple(range(pattern.world))
    for name, count in sizes.items():
        data = [
            [initial(r, name, count * pattern.n, pattern.dtype, seed) for seed in SEEDS]
            for r in everyone
        ]
        for row in range(count):
            rows = [[_row(flat, row, pattern.n) for flat in of_rank] for of_rank in data]
            for rank in everyone:
                found[f"old({name})[{row}] @ {rank}"] = rows[rank]
            for members in {everyone, *pattern.groups}:
                over = "ranks" if members == everyone else str(list(members))
                for op in ("sum", "max", "min"):
                    text = f"{op}(old({name})[{row}] @ q for q in {over})"
                    found[text] = [
                        reduced(op, None, [rows[m][i] for m in members]) for i in range(len(SEEDS))
                    ]
    return found
