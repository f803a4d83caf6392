"""Local work on torch tensors: copies, accumulations, scale, fill, compute and externs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from commlang.errors import UsageError
from commlang.expand.binding import handed_on, is_tensor
from commlang.operations import Kind, ReduceOp

if TYPE_CHECKING:
    from commlang.execute.memory import Memory
    from commlang.program import Program

Work = Callable[[], Any]

_ACCUMULATE: dict[ReduceOp, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    ReduceOp.SUM: torch.Tensor.add_,
    ReduceOp.PRODUCT: torch.Tensor.mul_,
    ReduceOp.MIN: lambda target, source: torch.minimum(target, source, out=target),
    ReduceOp.MAX: lambda target, source: torch.maximum(target, source, out=target),
    ReduceOp.BAND: torch.Tensor.bitwise_and_,
    ReduceOp.BOR: torch.Tensor.bitwise_or_,
    ReduceOp.BXOR: torch.Tensor.bitwise_xor_,
}


def bind_local(
    program: Program, row: int, memory: Memory, externs: Mapping[str, Callable[..., Any]]
) -> Work:
    """A callable that does the local work of a row."""
    site = program.site_of(row)
    views, arguments = memory.views(row), program.arguments_of(row)
    match site.kind:
        case Kind.COPY:
            return partial(views[1].copy_, views[0])
        case Kind.ACCUMULATE:
            assert site.op is not None
            return _accumulate(views[1], views[0], site.op.op)
        case Kind.SCALE:
            return partial(torch.Tensor.mul_, views[0], _factor(program, row, views[0]))
        case Kind.FILL:
            return partial(torch.Tensor.fill_, views[0], _number(arguments["value"]))
        case Kind.COMPUTE:
            return _compute(arguments, views)
        case _:
            return _extern(program, row, views, arguments, externs.get(site.name))


def _accumulate(target: torch.Tensor, source: torch.Tensor, op: ReduceOp) -> Work:
    function = _ACCUMULATE[op]
    if source.dtype == target.dtype:
        return partial(function, target, source)
    return lambda: function(target, source.to(target.dtype))


def _number(value: int | Fraction) -> int | float:
    return float(value) if isinstance(value, Fraction) else value


def _factor(program: Program, row: int, tensor: torch.Tensor) -> int | float:
    factor = program.arguments_of(row)["factor"]
    if not isinstance(factor, int) and not tensor.is_floating_point() and not tensor.is_complex():
        raise UsageError(
            f"{program.where(row)}: scale by {factor} of a {program.site_of(row).dtype} tensor "
            "has no exact result; cast it to a float dtype first"
        )
    return _number(factor)


def _compute(arguments: dict[str, Any], views: list[torch.Tensor]) -> Work:
    """Stand-in work: a matmul of the given size, or the given time; data stay as they are."""
    if "matmul" in arguments:
        m, n, k = arguments["matmul"]
        kind = views[0].dtype if views and views[0].is_floating_point() else torch.float32
        device = views[0].device if views else torch.device("cpu")
        a = torch.ones(m, k, dtype=kind, device=device)
        b = torch.ones(k, n, dtype=kind, device=device)
        return partial(torch.mm, a, b)
    return partial(time.sleep, float(arguments["duration"]))


def _extern(
    program: Program,
    row: int,
    views: list[torch.Tensor],
    arguments: dict[str, Any],
    function: Callable[..., Any] | None,
) -> Work:
    """A call of the bound Python callable with the extern's parameters, in order, less the dtypes.

    Without one, an extern takes the time that its `cost` says and leaves its tensors alone.
    """
    if function is None:
        return partial(time.sleep, float(arguments.get("cost", 0)))
    definition = program.site_of(row).extern
    assert definition is not None
    tensors = iter(views)
    values = [
        next(tensors) if is_tensor(p) else _number(arguments[p.target.id])
        for p in handed_on(definition.node.params)
    ]
    return partial(function, *values)
