"""What gloo does where operands of one operation share data, on ranks of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 3
CHUNK = 4
EACH = SIZE * CHUNK


def given(rank: int) -> torch.Tensor:
    return torch.arange(EACH, dtype=torch.float32) + 100 * (rank + 1)


def forms(rank: int, size: int, folder: Path) -> dict[str, bool]:
    """For each form, whether this rank has what it would have with operands apart."""
    meeting = f"file://{folder / 'store'}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
    try:
        return {name: form(rank) for name, form in FORMS.items()}
    finally:
        dist.destroy_process_group()


def gathered(rank: int, place: int) -> bool:
    """all_gather_single with the input at some place of the output."""
    table = torch.zeros(SIZE * EACH)
    piece = table[place * EACH : (place + 1) * EACH]
    piece.copy_(given(rank))
    dist.all_gather_single(table, piece)
    return torch.equal(table, torch.cat([given(r) for r in range(SIZE)]))


def listed(rank: int, place: int) -> bool:
    """all_gather with an entry of the list as input."""
    table = [torch.zeros(EACH) for _ in range(SIZE)]
    table[place].copy_(given(rank))
    dist.all_gather(table, table[place])
    return all(torch.equal(row, given(r)) for r, row in enumerate(table))


def one_output(rank: int) -> list[bool]:
    """all_gather into one tensor several times: whose values it ends with."""
    output = torch.zeros(EACH)
    dist.all_gather([output] * SIZE, given(rank))
    return [torch.equal(output, given(r)) for r in range(SIZE)]


def summed(rank: int, place: int, *, lists: bool) -> bool:
    """reduce_scatter into a part of the input."""
    whole = given(rank)
    parts = list(whole.chunk(SIZE))
    if lists:
        dist.reduce_scatter(parts[place], parts)
    else:
        dist.reduce_scatter_single(parts[place], whole)
    total = torch.stack([given(r) for r in range(SIZE)]).sum(0)
    return torch.equal(parts[place], total.chunk(SIZE)[rank])


def exchanged(rank: int, *, lists: bool) -> bool:
    """An all-to-all of a tensor onto itself."""
    whole = given(rank)
    if lists:
        parts = list(whole.chunk(SIZE))
        dist.all_to_all(parts, parts)
    else:
        dist.all_to_all_single(whole, whole)
    return torch.equal(whole, torch.cat([given(r).chunk(SIZE)[rank] for r in range(SIZE)]))


def reduced(rank: int) -> bool:
    """Whether a rank's own values outlive a reduce to rank 0."""
    values = given(rank)
    dist.reduce(values, dst=0)
    return torch.equal(values, given(rank))


FORMS = {
    "all_gather_single, own part": lambda rank: gathered(rank, rank),
    "all_gather_single, other part": lambda rank: gathered(rank, (rank + 1) % SIZE),
    "all_gather, own entry": lambda rank: listed(rank, rank),
    "all_gather, other entry": lambda rank: listed(rank, (rank + 1) % SIZE),
    "all_gather, one output": lambda rank: one_output(rank) == [False, False, True],
    "reduce_scatter_single, own part": lambda rank: summed(rank, rank, lists=False),
    "reduce_scatter_single, other part": lambda rank: summed(rank, (rank + 1) % SIZE, lists=False),
    "reduce_scatter, own entry": lambda rank: summed(rank, rank, lists=True),
    "reduce_scatter, other entry": lambda rank: summed(rank, (rank + 1) % SIZE, lists=True),
    "all_to_all, onto itself": lambda rank: exchanged(rank, lists=True),
    "all_to_all_single, onto itself": lambda rank: exchanged(rank, lists=False),
    "reduce, values outlive it": reduced,
}
