"""torch's dtypes and reduce ops in MPI's terms.

What MPI has no type for is computed in one that it has: short floats as float32, rounded once at
the end; bools as bytes, where a sum is "any" and a product is "all".
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch
import torch.distributed as dist
from mpi4py import MPI

from commlang.records import entity

_TYPES: dict[torch.dtype, MPI.Datatype] = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int8: MPI.INT8_T,
    torch.int16: MPI.INT16_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
    torch.uint8: MPI.UINT8_T,
    torch.uint16: MPI.UINT16_T,
    torch.uint32: MPI.UINT32_T,
    torch.uint64: MPI.UINT64_T,
}
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_MOVED = {1: MPI.BYTE, 2: MPI.INT16_T, 4: MPI.INT32_T, 8: MPI.INT64_T, 16: MPI.C_DOUBLE_COMPLEX}
"""Any type of an element's size will do where data are only moved."""

_OPS: dict[Any, MPI.Op] = {
    dist.ReduceOp.SUM: MPI.SUM,
    dist.ReduceOp.AVG: MPI.SUM,
    dist.ReduceOp.PRODUCT: MPI.PROD,
    dist.ReduceOp.MIN: MPI.MIN,
    dist.ReduceOp.MAX: MPI.MAX,
    dist.ReduceOp.BAND: MPI.BAND,
    dist.ReduceOp.BOR: MPI.BOR,
    dist.ReduceOp.BXOR: MPI.BXOR,
}
_OF_BOOLS: dict[Any, MPI.Op] = {dist.ReduceOp.SUM: MPI.MAX, dist.ReduceOp.PRODUCT: MPI.MIN}
_BITWISE = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


@entity
class Arithmetic:
    """How MPI reduces tensors of a dtype: in which dtype and by which op; a mean divides last."""

    dtype: torch.dtype
    op: MPI.Op
    mean: bool


_known: dict[tuple[torch.dtype, Any], Arithmetic] = {}


def arithmetic(dtype: torch.dtype, op: dist.ReduceOp) -> Arithmetic:
    """How to reduce real numbers of `dtype`; raises ValueError for what has no meaning."""
    kind = kind_of(op)
    found = _known.get((dtype, kind))
    if found is None:
        found = _known[dtype, kind] = _arithmetic(dtype, kind)
    return found


def kind_of(op: dist.ReduceOp) -> Any:
    """The plain op: torch also has a class for those that may hold a factor."""
    return getattr(op, "op", op)


def moved(tensor: torch.Tensor) -> MPI.Datatype:
    """A type for moving a tensor's elements as they are."""
    return _MOVED[tensor.element_size()]


def computed(dtype: torch.dtype) -> MPI.Datatype:
    """MPI's type for a dtype of `Arithmetic`."""
    return _TYPES[dtype]


def _arithmetic(dtype: torch.dtype, kind: Any) -> Arithmetic:
    op = _OPS.get(kind)
    mean = kind == dist.ReduceOp.AVG
    if op is None:
        _refuse(dtype, kind)
    if dtype == torch.bool:
        if mean:
            _refuse(dtype, kind)
        return Arithmetic(torch.uint8, _OF_BOOLS.get(kind, op), mean=False)
    working = _WIDER.get(dtype, dtype)
    floats = working.is_floating_point
    if working not in _TYPES or (floats and kind in _BITWISE) or (mean and not floats):
        _refuse(dtype, kind)
    return Arithmetic(working, op, mean)


def _refuse(dtype: torch.dtype, kind: Any) -> NoReturn:
    raise ValueError(f"commlang_mpi has no {kind.name} of {str(dtype).removeprefix('torch.')}")
