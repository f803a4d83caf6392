"""Tensors as buffers of MPI, by way of a copy where MPI cannot use their memory as it is."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from mpi4py import MPI

from commlang.execute.mpi.arithmetic import computed, moved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Spec = list[Any]
"""mpi4py's description of a buffer: memory, counts, perhaps displacements, type."""

_MOST = 2**31 - 1


class Staging:
    """What is to be copied before and after an operation; tensors that need no copy are used."""

    def __init__(self) -> None:
        self.before: list[Callable[[], object]] = []
        self.after: list[Callable[[], object]] = []
        self.held: list[torch.Tensor] = []
        """The tensors whose memory MPI reads and writes."""

    def given(self, tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A contiguous tensor of the same values when the operation starts."""
        return self._staged(tensor, dtype, given=True, made=False)

    def made(self, tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A contiguous tensor for values that `tensor` has once the operation is over."""
        return self._staged(tensor, dtype, given=False, made=True)

    def updated(self, tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Both at once."""
        return self._staged(tensor, dtype, given=True, made=True)

    def _staged(
        self, tensor: torch.Tensor, dtype: torch.dtype | None, *, given: bool, made: bool
    ) -> torch.Tensor:
        check(tensor)
        if tensor.is_contiguous():
            if tensor.dtype == torch.bool and dtype == torch.uint8:
                tensor = tensor.view(torch.uint8)
            if dtype is None or tensor.dtype == dtype:
                self.held.append(tensor)
                return tensor
        tensor = tensor.detach()  # what requires a gradient is not written in place
        stage = torch.empty(tensor.shape, dtype=dtype or tensor.dtype)
        self.held.append(stage)
        if given:
            self.before.append(partial(stage.copy_, tensor))
        if made:
            self.after.append(partial(tensor.copy_, stage))
        return stage

    def given_list(
        self, tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """The values of all tensors in one, when the operation starts."""
        whole, parts = self._list(tensors, dtype)
        self.before += [partial(p.copy_, t) for p, t in zip(parts, tensors, strict=bool(parts))]
        return whole

    def made_list(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """One tensor for values that go into all tensors once the operation is over."""
        whole, parts = self._list(tensors, None)
        pairs = zip([t.detach() for t in tensors], parts, strict=bool(parts))
        self.after += [partial(tensor.copy_, part) for tensor, part in pairs]
        return whole

    def _list(
        self, tensors: Sequence[torch.Tensor], dtype: torch.dtype | None
    ) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
        """One tensor for a list, and its parts where they are copies."""
        for tensor in tensors:
            check(tensor)
        dtype = dtype or tensors[0].dtype
        joined = _joined(tensors)
        if joined is not None and joined.dtype == dtype:
            self.held.append(joined)
            return joined, ()
        whole = torch.empty(sum(tensor.numel() for tensor in tensors), dtype=dtype)
        self.held.append(whole)
        flat = torch.split(whole, [tensor.numel() for tensor in tensors])
        return whole, [p.view(t.shape) for p, t in zip(flat, tensors, strict=True)]


def check(tensor: torch.Tensor) -> None:
    """Raise ValueError for a tensor that is not in memory as MPI knows it."""
    if not tensor.is_cpu or tensor.layout != torch.strided:
        raise ValueError(
            f"commlang_mpi moves dense tensors on the cpu, not {tensor.layout} on {tensor.device}"
        )


def spec(tensor: torch.Tensor, datatype: MPI.Datatype | None = None) -> Spec:
    """A contiguous tensor as a buffer: of numbers to compute with, or by default to be moved."""
    return [_memory(tensor), _count(tensor), datatype or moved(tensor)]


def numbers(tensor: torch.Tensor) -> Spec:
    """A contiguous tensor as a buffer of numbers to compute with."""
    return spec(tensor, computed(tensor.dtype))


def parts(tensor: torch.Tensor, counts: Sequence[int]) -> Spec:
    """A contiguous tensor as a buffer with so many elements of each rank."""
    starts = [sum(counts[:rank]) for rank in range(len(counts))]
    _count(tensor)
    return [_memory(tensor), list(counts), starts, moved(tensor)]


def rows(tensor: torch.Tensor, splits: Sequence[int], size: int) -> list[int]:
    """How many elements each rank has of a tensor that is split by its first dimension."""
    length, each = (tensor.shape[0] if tensor.dim() else 1), prod(tensor.shape[1:])
    if not splits and length % size:
        raise ValueError(f"{length} rows do not split evenly over {size} ranks")
    sizes = list(splits) or [length // size] * size
    if len(sizes) != size or sum(sizes) != length:
        raise ValueError(f"split sizes {sizes} do not make {length} rows for {size} ranks")
    return [rows * each for rows in sizes]


def _memory(tensor: torch.Tensor) -> Any:
    return MPI.buffer.fromaddress(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def _count(tensor: torch.Tensor) -> int:
    count = tensor.numel()
    if count > _MOST:
        raise ValueError(f"commlang_mpi moves up to {_MOST} elements at once, not {count}")
    return count


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The list as one tensor, where its memory is one piece already, as that of chunks."""
    first = tensors[0]
    end = first.data_ptr()
    memory = first.untyped_storage().data_ptr()
    for tensor in tensors:
        alike = tensor.dtype == first.dtype and tensor.untyped_storage().data_ptr() == memory
        if not alike or not tensor.is_contiguous() or tensor.data_ptr() != end:
            return None
        end += tensor.numel() * tensor.element_size()
    length = sum(tensor.numel() for tensor in tensors)
    return first.detach().as_strided((length,), (1,))
