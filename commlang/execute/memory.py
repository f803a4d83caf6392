"""The tensors behind a rank's buffers, and the views that its operations use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.dtypes import DType
    from commlang.expand.record import BufferBlock
    from commlang.expand.values import View
    from commlang.program import Program


def torch_dtype(dtype: DType) -> torch.dtype:
    """torch's own object for a dtype."""
    return getattr(torch, dtype.name)


def shape_of(view: View) -> tuple[int, ...]:
    """The shape of a parameter in the program of one rank."""
    return tuple(int(d[0]) if not isinstance(d, int) else d for d in view.shape)


class Memory:
    """Parameters are the caller's tensors or made here, temps are made here.

    Iterations of a loop share the memory of a temp, unless they run side by side.
    """

    def __init__(
        self, program: Program, tensors: Mapping[str, torch.Tensor], device: torch.device
    ) -> None:
        self._program = program
        self._device = device
        self._temps: dict[tuple[int, int], torch.Tensor] = {}
        self._capacity: dict[int, int] = {}
        for block in program.buffers:
            most = max(block.capacity, self._capacity.get(block.storage, 0))
            self._capacity[block.storage] = most
        self.tensors = {n: self._parameter(n, v, tensors) for n, v in program.tensors.items()}
        self._flat = {n: t.view(-1) for n, t in self.tensors.items()}
        self._parameters = {
            program.buffer_of(int(_first(v.buffer))).base: n for n, v in program.tensors.items()
        }
        unknown = set(tensors) - set(program.tensors)
        if unknown:
            known = ", ".join(program.tensors)
            raise UsageError(f"`{program.name}` has no tensor `{min(unknown)}`; it has {known}")

    def _parameter(
        self, name: str, view: View, tensors: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        shape, dtype = shape_of(view), torch_dtype(view.dtype)
        given = tensors.get(name)
        if given is None:
            return torch.zeros(shape, dtype=dtype, device=self._device)
        if given.dtype != dtype or tuple(given.shape) != shape:
            raise UsageError(
                f"tensor `{name}` is {str(given.dtype).removeprefix('torch.')} "
                f"{list(given.shape)}, the plan needs {view.dtype} {list(shape)}"
            )
        if not given.is_contiguous():
            raise UsageError(f"tensor `{name}` must be contiguous")
        if given.device.type != self._device.type:
            raise UsageError(f"tensor `{name}` is on {given.device}, the group on {self._device}")
        return given.detach()

    def view(self, operand: int) -> torch.Tensor:
        """The elements of one operand, flat, or in the shape that the operation needs."""
        operands = self._program.operands
        flat = self._buffer(int(operands.buffer[operand]))
        offset, length = int(operands.offset[operand]), int(operands.length[operand])
        layout = int(operands.layout[operand])
        if layout < 0:
            return flat.narrow(0, offset, length)
        shape, strides = operands.layouts[layout]
        return flat.as_strided(shape, strides, offset)

    def views(self, row: int) -> list[torch.Tensor]:
        """All operands of a row."""
        first, count = int(self._program.first[row]), int(self._program.count[row])
        return [self.view(operand) for operand in range(first, first + count)]

    def _buffer(self, number: int) -> torch.Tensor:
        block = self._program.buffer_of(number)
        if block.base in self._parameters:
            return self._flat[self._parameters[block.base]]
        key = (block.storage, number if block.distinct else -1)
        if key not in self._temps:
            self._temps[key] = self._temp(block)
        return self._temps[key]

    def _temp(self, block: BufferBlock) -> torch.Tensor:
        size = self._capacity[block.storage]
        return torch.zeros(size, dtype=torch_dtype(block.dtype), device=self._device)


def _first(value: object) -> int:
    return value if isinstance(value, int) else int(value[0])  # pyright: ignore
