"""Memory for messages: tensors of the CPU that start where large messages arrive fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE = 4096
_LARGE = 64 << 10
"""Bytes from which it pays."""


def flat(
    make: Callable[..., torch.Tensor], count: int, dtype: torch.dtype, device: torch.device | str
) -> torch.Tensor:
    """What `make`, torch.empty or torch.zeros, makes of one dim; on the CPU, large ones fill pages.

    Left to malloc, a tensor of more than 128 KiB mostly starts 64 bytes past a page. Some
    processors copy from the start of a page, where the kernel has what arrives, to 64 bytes past
    another at half their speed, as addresses then look alike in their lower 12 bits: on an AMD EPYC
    both directions of 16 MiB over gloo take 20 ms, and 13 ms into tensors that start a page
    (benchmarks/pages.txt).
    """
    size = count * dtype.itemsize
    if torch.device(device).type != "cpu" or size < _LARGE:
        return make(count, dtype=dtype, device=device)
    room = make(size + _PAGE, dtype=torch.uint8, device=device)
    start = -room.data_ptr() % _PAGE
    whole: Any = room[start : start + size]
    return whole.view(dtype)
