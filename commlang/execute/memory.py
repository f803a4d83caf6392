"""The tensors behind a rank's buffers, and the views that its operations use."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import prod
from typing import TYPE_CHECKING

import torch

from commlang.errors import UsageError
from commlang.execute.allocate import flat
from commlang.execute.shortage import allocating

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    """Parameters are the caller's tensors or made here, temps are made here and kept.

    Iterations of a loop share the memory of a temp, unless they run side by side.
    """

    def __init__(self, program: Program, device: torch.device) -> None:
        self._program = program
        self._device = device
        self._temps: dict[tuple[int, int], torch.Tensor] = {}
        self._capacity: dict[int, int] = {}
        for block in program.buffers:
            most = max(block.capacity, self._capacity.get(block.storage, 0))
            self._capacity[block.storage] = most
        self._parameters = {
            program.buffer_of(int(_first(v.buffer))).base: n for n, v in program.tensors.items()
        }
        self.tensors: dict[str, torch.Tensor] = {}
        """The tensor of every parameter, as the caller gave it."""
        self._flat: dict[str, torch.Tensor] = {}
        self._places: list[tuple[str, torch.Tensor, Callable[[], int], int, torch.Size]] = []

    def holds(self, given: Mapping[str, torch.Tensor]) -> bool:
        """Whether to adopt these tensors would change nothing.

        `x.data = y` moves a tensor's data and leaves the object the same.
        """
        known = 0
        for name, tensor, data_ptr, data, shape in self._places:
            if name in given:
                known += 1
                if given[name] is not tensor:
                    return False
            if data_ptr() != data or tensor.shape != shape:
                return False
        return known == len(given)

    def adopt(self, given: Mapping[str, torch.Tensor]) -> None:
        """Use these tensors; others stay as they were, or are made here and filled with zeros.

        Raises UsageError for what the plan does not fit, and then changes nothing.
        """
        program = self._program
        unknown = [name for name in given if name not in program.tensors]
        if unknown:
            known = ", ".join(program.tensors) or "none"
            raise UsageError(f"`{program.name}` has no tensor `{unknown[0]}`; it has {known}")
        for name, tensor in given.items():
            self._check(name, program.tensors[name], tensor)
        tensors = {name: self._tensor(name, view, given) for name, view in program.tensors.items()}
        self._refuse_overlap(tensors)
        self.tensors = tensors
        # Detached: operations write in place into leaves that require gradients, too.
        self._flat = {name: tensor.detach().view(-1) for name, tensor in tensors.items()}
        self._places = [(name, t, _place(t), t.data_ptr(), t.shape) for name, t in tensors.items()]

    def release(self) -> None:
        """Forget the parameters' tensors; temps are kept."""
        self.tensors, self._flat, self._places = {}, {}, []

    def _tensor(self, name: str, view: View, given: Mapping[str, torch.Tensor]) -> torch.Tensor:
        found = given.get(name, self.tensors.get(name))
        if found is None:
            return self._zeros(shape_of(view), view.dtype, f"tensor `{name}`")
        return found

    def _check(self, name: str, view: View, tensor: object) -> None:
        if not isinstance(tensor, torch.Tensor):
            raise UsageError(f"`{name}` is a {type(tensor).__name__}; give a torch.Tensor")
        if hasattr(tensor, "to_local"):
            raise UsageError(f"tensor `{name}` is a DTensor; give this rank's part, .to_local()")
        shape, dtype = shape_of(view), torch_dtype(view.dtype)
        if tensor.dtype != dtype or tuple(tensor.shape) != shape:
            raise UsageError(
                f"tensor `{name}` is {str(tensor.dtype).removeprefix('torch.')} "
                f"{list(tensor.shape)}, the plan needs {view.dtype} {list(shape)}"
            )
        if tensor.layout != torch.strided or not tensor.is_contiguous():
            raise UsageError(
                f"tensor `{name}` is not contiguous; give one that is, as x.contiguous() makes, "
                "and copy the result back if x itself is wanted"
            )
        if tensor.untyped_storage().nbytes() < tensor.nbytes:
            raise UsageError(
                f"the memory of tensor `{name}` was freed (its storage was resized, as FSDP does "
                "with parameters between uses); give a tensor that has its data"
            )
        if tensor.is_conj() or tensor.is_neg():
            raise UsageError(f"tensor `{name}` is a lazy view; give x.resolve_conj().resolve_neg()")
        here = self._device
        if tensor.device.type != here.type or here.index not in (None, tensor.device.index):
            raise UsageError(
                f"tensor `{name}` is on {tensor.device}, the Executor on {here}; move it, or give "
                "the Executor another device="
            )

    def _refuse_overlap(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The proof that nothing races takes two parameters for two tensors."""
        spans = sorted((t.data_ptr(), t.data_ptr() + t.nbytes, n) for n, t in tensors.items())
        spans = [span for span in spans if span[0] < span[1]]
        if all(one[1] <= other[0] for one, other in pairwise(spans)):
            return
        written = self._written()
        for (_, end, one), (start, _, other) in combinations(spans, 2):
            if start < end and written & {one, other}:
                raise UsageError(
                    f"tensors `{one}` and `{other}` share memory; the plan was checked for "
                    "tensors apart, so give a copy of one"
                )

    def _written(self) -> set[str]:
        """Parameters that this rank writes."""
        operands = self._program.operands
        numbers = set(operands.buffer[operands.access > 0].tolist())
        return {name for base, name in self._parameters.items() if base in numbers}

    def view(self, operand: int) -> torch.Tensor:
        """The elements of one operand, flat, or in the shape that the operation needs."""
        operands = self._program.operands
        flat = self._buffer(int(operands.buffer[operand]))
        offset, length = int(operands.offset[operand]), int(operands.length[operand])
        layout = int(operands.layout[operand])
        if layout < 0:
            return flat.narrow(0, offset, length)
        shape, strides = operands.layouts[layout]
        return flat.as_strided(shape, strides, flat.storage_offset() + offset)

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
        shape = (self._capacity[block.storage],)
        return self._zeros(shape, block.dtype, f"temp `{block.name}`")

    def _zeros(self, shape: tuple[int, ...], dtype: DType, what: str) -> torch.Tensor:
        size = prod(shape) * dtype.itemsize
        # Not in inference mode, else a later run outside that mode could not write it.
        with torch.inference_mode(False), allocating(what, size):
            made = flat(torch.zeros, prod(shape), torch_dtype(dtype), self._device)
            return made.view(shape)


def _place(tensor: torch.Tensor) -> Callable[[], int]:
    """Where the data are, or -1 once a transpose in place has left only the shape as it was."""
    dims = [size for size in tensor.shape if size > 1]
    if len(set(dims)) == len(dims):  # then a transpose shows in the shape
        return tensor.data_ptr
    return lambda: tensor.data_ptr() if tensor.is_contiguous() else -1


def _first(value: object) -> int:
    return value if isinstance(value, int) else int(value[0])  # pyright: ignore
