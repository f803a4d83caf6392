"""Local work: arrow copies, scale, fill, compute and externs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.diagnostics import did_you_mean
from commlang.expand import arrays, binding, views
from commlang.expand.arrays import is_int
from commlang.expand.fault import fail
from commlang.expand.record import Column, Nest, Operand
from commlang.expand.scope import Frame, Scope
from commlang.expand.values import SEQUENCES, Op, Value, View, describe, take
from commlang.operations import Access, Kind, Operation, ReduceOp
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.expand.arrays import Int
    from commlang.expand.statements import Evaluator
    from commlang.resolve.modules import Definition


def match_arguments(
    ev: Evaluator, call: ast.Call, operation: Operation, scope: Scope
) -> dict[str, ast.Expr]:
    """The argument expressions of an operation by name."""
    names = [a.name for a in operation.arguments]
    if len(call.args) > len(names):
        fail(scope, call, "CL102", f"`{operation.name}` takes {len(names)} arguments")
    given: dict[str, ast.Expr] = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.name not in names:
            message = f"`{operation.name}` has no argument `{keyword.name}`"
            fail(scope, keyword, "CL102", message, hint=did_you_mean(keyword.name, names))
        if keyword.name in given:
            fail(scope, keyword, "CL102", f"`{keyword.name}` is given twice")
        given[keyword.name] = keyword.value
    for argument in operation.arguments:
        if argument.required and argument.name not in given:
            fail(scope, call, "CL102", f"`{operation.name}` needs `{argument.name}`")
    return given


def tensor(ev: Evaluator, node: ast.Expr, scope: Scope, what: str) -> View:
    """Evaluate to a tensor view."""
    value = ev.eval(node, scope)
    if isinstance(value, View):
        return value
    hint = None
    if isinstance(value, SEQUENCES):
        hint = "one tensor is wanted here, not a list of them; index the list"
    fail(scope, node, "CL103", f"{what} is a tensor, not {describe(value)}", hint=hint)


def flat_operand(view: View, access: Access) -> Operand:
    """An operand read element by element: its shape is kept only if it is not contiguous."""
    return Operand(view, access, shaped=not arrays.everywhere(view.contiguous()))


def number(value: Value, numbers: list[Int]) -> Any:
    """An argument of a site: the value itself if uniform, else a column of numbers."""
    if not arrays.is_array(value):
        return value
    real = arrays.is_real(value)
    numbers.append(np.ascontiguousarray(value).view(np.int64) if real else value.astype(np.int64))
    return Column(len(numbers) - 1, real)


def operation(
    ev: Evaluator, call: ast.Call, operation: Operation, scope: Scope, nest: Nest | None
) -> None:
    """`scale`, `fill` and `compute`."""
    given = match_arguments(ev, call, operation, scope)
    if operation.kind is Kind.COMPUTE:
        _compute(ev, call, given, scope, nest)
        return
    target = tensor(ev, given["tensor"], scope, f"what `{operation.name}` works on")
    name = "factor" if operation.kind is Kind.SCALE else "value"
    value = ev.eval(given[name], scope)
    if not arrays.is_number(value):
        fail(scope, given[name], "CL103", f"`{name}` is a number, not {describe(value)}")
    numbers: list[Int] = []
    access = Access.UPDATE if operation.kind is Kind.SCALE else Access.WRITE
    ev.emit(
        scope,
        nest,
        operation.kind,
        operation.name,
        call,
        dtype=target.dtype,
        operands=(flat_operand(target, access),),
        arguments=((name, number(value, numbers)),),
        numbers=tuple(numbers),
    )


def _compute(
    ev: Evaluator, call: ast.Call, given: dict[str, ast.Expr], scope: Scope, nest: Nest | None
) -> None:
    numbers: list[Int] = []
    arguments: list[tuple[str, Any]] = []
    for name, node in given.items():
        if name in ("reads", "writes"):
            continue
        value = ev.eval(node, scope)
        if node in call.args:  # a label and a duration may stand in either order
            name = "label" if isinstance(value, str) else "duration"
        if isinstance(value, str) and name == "label":
            pass
        elif name == "matmul":
            value = _matmul(value, node, numbers, scope)
        else:
            value = number(_duration(name, value, node, scope), numbers)
        arguments.append((name, value))
    if not {"duration", "matmul"} & {name for name, _ in arguments}:
        fail(scope, call, "CL102", "`compute` needs a duration or `matmul=[m, n, k]`")
    operands = [
        Operand(view, access, shaped=True)
        for name, access in (("reads", Access.READ), ("writes", Access.WRITE))
        if name in given
        for view in _some(ev, given[name], scope)
    ]
    ev.emit(
        scope,
        nest,
        Kind.COMPUTE,
        "compute",
        call,
        operands=tuple(operands),
        arguments=tuple(arguments),
        numbers=tuple(numbers),
    )


def _duration(name: str, value: Value, node: ast.Expr, scope: Scope) -> Value:
    if name == "label" or is_int(value) or not arrays.is_number(value):
        hint = "a duration has a unit: `3ms`" if is_int(value) else None
        message = f"`{name}` of compute cannot be {describe(value)}"
        fail(scope, node, "CL103", message, hint=hint)
    if arrays.anywhere(value < 0):
        fail(scope, node, "CL110", "the duration is negative", lanes=value < 0)
    return value


def _matmul(value: Value, node: ast.Expr, numbers: list[Int], scope: Scope) -> tuple[Any, ...]:
    if not isinstance(value, SEQUENCES) or not isinstance(value.length, int) or value.length != 3:
        fail(scope, node, "CL103", "`matmul` is a list of three ints, [m, n, k]")
    parts = [value.at(i) for i in range(3)]
    if not all(is_int(part) for part in parts):
        fail(scope, node, "CL103", "`matmul` is a list of three ints, [m, n, k]")
    return tuple(number(part, numbers) for part in parts)


def _some(ev: Evaluator, node: ast.Expr, scope: Scope) -> list[View]:
    value = ev.eval(node, scope)
    if isinstance(value, View):
        return [value]
    if isinstance(value, SEQUENCES) and isinstance(value.length, int):
        items = [value.at(i) for i in range(value.length)]
        tensors = [item for item in items if isinstance(item, View)]
        if len(tensors) == len(items):
            return tensors
    fail(scope, node, "CL103", f"a tensor or a list of them is wanted, not {describe(value)}")


def arrow(
    ev: Evaluator, node: ast.Transfer, op: Op | None, scope: Scope, nest: Nest | None
) -> None:
    """`x -> y`: a copy, with a cast between dtypes; with `op`, an accumulation."""
    source = tensor(ev, node.source.value, scope, "what an arrow copies")
    target = tensor(ev, node.target.value, scope, "what an arrow writes to")
    accumulate(ev, node, source, target, op, scope, nest)


def accumulate(
    ev: Evaluator,
    node: ast.Transfer,
    source: View,
    target: View,
    op: Op | None,
    scope: Scope,
    nest: Nest | None,
    deferred: Nest | None = None,
) -> None:
    """Copy or accumulate one view into another of the same shape."""
    differs = arrays.logical_not(views.same_shape(source, target))
    if arrays.anywhere(differs):
        have, want = views.shape_text(source, differs), views.shape_text(target, differs)
        message = f"the arrow copies shape {have} into shape {want}"
        fail(scope, node, "CL112", message, lanes=differs)
    access = Access.WRITE if op is None else Access.UPDATE
    flat = all(arrays.everywhere(view.contiguous()) for view in (source, target))
    ev.emit(
        scope,
        nest,
        Kind.COPY if op is None else Kind.ACCUMULATE,
        "copy" if op is None else "accumulate",
        node,
        op=op,
        dtype=target.dtype,
        operands=(
            Operand(source, Access.READ, shaped=not flat),
            Operand(target, access, shaped=not flat),
        ),
        deferred=deferred,
    )


def arrow_op(ev: Evaluator, node: ast.Transfer, scope: Scope) -> tuple[Op | None, Int]:
    """The `op=` and `tag=` of a transfer."""
    op: Op | None = None
    tag: Int = 0
    for keyword in node.keywords:
        if keyword.name == "op":
            op = ev.eval(keyword.value, scope)
            if not isinstance(op, Op):
                fail(scope, keyword, "CL103", f"`op` is a reduce op, not {describe(op)}")
            if op.op in (ReduceOp.AVG, ReduceOp.PREMUL_SUM):
                hint = "accumulate with `op=sum`, then `scale(…)`"
                message = f"two values cannot be accumulated with `{op.op}`"
                fail(scope, keyword, "CL103", message, hint=hint)
        elif keyword.name == "tag" and node.source.rank is not None:
            tag = ev.integer(keyword.value, scope, "a tag")
        else:
            message = f"an arrow has no argument `{keyword.name}`"
            hint = did_you_mean(keyword.name, ("op", "tag"))
            if keyword.name == "tag":
                hint = "a tag belongs to a message: `x @ a -> y @ b, tag=1`"
            fail(scope, keyword, "CL102", message, hint=hint)
    return op, tag


def extern(
    ev: Evaluator, call: ast.Call, definition: Definition, scope: Scope, nest: Nest | None
) -> None:
    """A call of an extern: an event that reads and writes what its parameters say."""
    node = definition.node
    given = binding.collect(node.name, node.params, call, ev, scope)
    ranks = ev.frame_ranks(scope)
    frame = Frame(definition, ranks, (*scope.frame.path, call))
    inner = Scope(frame, scope.lanes, scope, None, instances=scope.instances)
    ev.enter(inner, ranks)
    binding.bind(node.params, given, ev, inner, scope)
    numbers: list[Int] = []
    arguments: list[tuple[str, Any]] = []
    operands: list[Operand] = []
    for param in node.params:
        name = param.target.id
        if name not in inner.vars:
            fail(scope, call, "CL102", f"`{node.name}` needs a tensor for `{name}`")
        value = inner.vars[name]
        if isinstance(value, View):
            operands.append(Operand(value, Access(param.mode or "update"), shaped=True))
        else:
            arguments.append((name, number(value, numbers)))
    for statement in node.body:
        if isinstance(statement, ast.Cost):
            cost = ev.eval(statement.value, inner)
            if not arrays.is_number(cost) or arrays.anywhere(cost < 0):
                fail(inner, statement.value, "CL103", "`cost` is a duration of 0 or more")
            arguments.append(("cost", number(cost, numbers)))
        elif isinstance(statement, ast.Require):
            ev.block((statement,), inner, None)
    ev.emit(
        scope,
        nest,
        Kind.EXTERN,
        node.name,
        call,
        operands=tuple(operands),
        arguments=tuple(arguments),
        numbers=tuple(numbers),
        extern=definition,
    )


def flatten(sequence: Any, lanes: int) -> tuple[Value, Int]:
    """The items of a list on lanes of their own, lane by lane, and how many each lane has."""
    length = sequence.length
    counts = arrays.broadcast(length, lanes)
    owner = np.repeat(np.arange(lanes), counts)
    ends = np.cumsum(counts)
    item = np.arange(len(owner)) - np.repeat(ends - counts, counts)
    return take(sequence, owner).at(item), length
