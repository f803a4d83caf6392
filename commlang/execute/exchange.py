"""Tensors of other ranks after a run, for contracts that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_dist: Any = dist  # torch's collectives have no complete types


def final_tensors(
    tensors: Mapping[str, torch.Tensor], names: Iterable[str], group: dist.ProcessGroup | None
) -> Callable[[int, str], torch.Tensor]:
    """A look-up of any rank's tensor by (rank, name); only those in `names` were exchanged.

    Every rank of the group calls this. Tensors travel as bytes, padded to the longest, since
    shapes may differ between ranks and backends do not move every dtype.
    """
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    gathered = {name: _gather(tensors[name], size, group) for name in sorted(names)}

    def final(of: int, name: str) -> torch.Tensor:
        return tensors[name] if of == rank else gathered[name][of]

    return final


def _gather(tensor: torch.Tensor, size: int, group: dist.ProcessGroup | None) -> list[torch.Tensor]:
    shapes: list[tuple[int, ...]] = [()] * size
    _dist.all_gather_object(shapes, tuple(tensor.shape), group=group)
    flat = tensor.contiguous().view(-1).view(torch.uint8)
    itemsize = tensor.element_size()
    lengths = [torch.Size(shape).numel() * itemsize for shape in shapes]
    padded = flat.new_zeros(max(*lengths, 1))
    padded[: flat.numel()] = flat
    parts = [torch.empty_like(padded) for _ in range(size)]
    _dist.all_gather(parts, padded, group=group)
    return [
        part[:length].view(tensor.dtype).view(shape)
        for part, length, shape in zip(parts, lengths, shapes, strict=True)
    ]
