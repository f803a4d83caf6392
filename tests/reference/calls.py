"""What the reference interpreter knows of the built-in operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.syntax import ast
from tests.reference.expressions import Names, evaluate
from tests.reference.values import DTypeName, Event, Fault, Group, Op, Tensor, items

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.operations import Operation


def is_tensor(param: ast.Param) -> bool:
    kind = param.type
    return kind is not None and kind.name != "int" and kind.shape is not None


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a tensor or of a table as nested lists."""
    if isinstance(value, Tensor):
        return value.shape
    shape: list[int] = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0]
    return tuple(shape)


def group_of(call: ast.Call, names: Names, me: int) -> Group:
    """The group that a call runs on; the caller must be one of its members."""
    node = next((k.value for k in call.keywords if k.name == "group"), None)
    group = names["ranks"] if node is None else evaluate(node, names)
    if not isinstance(group, Group) or me not in group.members:
        raise Fault("not a member")
    return group


def fill(
    event: Event,
    operation: Operation,
    args: Sequence[Any],
    keywords: dict[str, Any],
    names: Names,
    me: int,
) -> None:
    """Evaluate the arguments of an operation into its event."""
    nodes = dict(zip((a.name for a in operation.arguments), args, strict=False)) | keywords
    values = {name: evaluate(node, names) for name, node in nodes.items()}
    if event.kind in ("SCALE", "FILL"):
        target = values.pop("tensor")
        event.dtype, event.operands = target.buffer.dtype, [(target, _access(event.kind))]
        event.arguments = values
    elif event.kind == "COMPUTE":
        _compute(event, values)
    else:
        _communicate(event, operation, values, names, me)


def _access(kind: str) -> str:
    return "update" if kind == "SCALE" else "write"


def _compute(event: Event, values: dict[str, Any]) -> None:
    for name, access in (("reads", "read"), ("writes", "write")):
        data = values.pop(name, [])
        event.operands += [(t, access) for t in ([data] if isinstance(data, Tensor) else data)]
    for name, value in values.items():
        label = "label" if isinstance(value, str) else name
        event.arguments[label] = tuple(value) if isinstance(value, list) else value


def fill_extern(event: Event, node: ast.Extern, names: Names) -> None:
    for param in node.params:
        value = names[param.target.id]
        if isinstance(value, Tensor):
            event.operands.append((value, param.mode or "update"))
        else:
            event.arguments[param.target.id] = value
    for statement in node.body:
        if isinstance(statement, ast.Cost):
            event.arguments["cost"] = evaluate(statement.value, names)
        elif isinstance(statement, ast.Require) and not evaluate(statement.condition, names):
            raise Fault("required")


def _communicate(
    event: Event, operation: Operation, values: dict[str, Any], names: Names, me: int
) -> None:
    group = values.get("group", names["ranks"])
    if not isinstance(group, Group) or me not in group.members:
        raise Fault("not a member")
    event.group = (group.label, group.members)
    end = next((n for n in ("dst", "src", "group_dst", "group_src") if n in values), None)
    if operation.kind.is_message or operation.kind.is_rooted:
        space = group.members if end and end.startswith("group_") else names["ranks"].members
        place = values[end] if end else 0
        if not 0 <= place < len(space) or space[place] not in group.members:
            raise Fault("no such rank")
        event.peer = space[place]
        if operation.kind.is_message and event.peer == me:
            raise Fault("a message to itself")
    if operation.argument("op") is not None:
        event.op = values.get("op", Op("sum"))
    event.tag = values.get("tag", 0)
    event.operands = _data(event, values, group, me)
    if event.operands:
        event.dtype = event.operands[0][0].buffer.dtype
    for tensor, _ in event.operands:
        if not tensor.contiguous():
            raise Fault("strided")


def _data(event: Event, values: dict[str, Any], group: Group, me: int) -> list[tuple[Tensor, str]]:
    """The data of a call, what it writes first."""
    size = len(group)
    if event.kind == "BARRIER":
        return []
    if event.kind in ("SEND", "RECV", "ALL_REDUCE", "REDUCE", "BROADCAST"):
        access = {"SEND": "read", "RECV": "write"}.get(event.kind, "update")
        return [(values["tensor"], access)]
    if event.kind in ("SCATTER", "GATHER"):
        name = f"{event.name}_list"
        if (name in values) != (event.peer == me):
            raise Fault("the list belongs to the root")
        many = _list(values[name], size) if name in values else []
        if any(t.index.size != values["tensor"].index.size for t in many):
            raise Fault("sizes differ")
        if event.kind == "SCATTER":
            return [(values["tensor"], "write"), *((t, "read") for t in many)]
        return [*((t, "write") for t in many), (values["tensor"], "read")]
    outs = next(
        values[n]
        for n in ("output", "output_tensor", "tensor_list", "output_tensor_list")
        if n in values
    )
    ins = next(
        values[n]
        for n in ("input", "input_tensor", "tensor", "input_list", "input_tensor_list")
        if n in values
    )
    if event.name == "all_to_all_single":
        splits = [values.get("output_split_sizes"), values.get("input_split_sizes")]
        if splits != [None, None]:
            outs, ins = (_split(t, s, size) for t, s in zip((outs, ins), splits, strict=True))
        elif outs.index.size != ins.index.size or any(t.shape[0] % size for t in (outs, ins)):
            raise Fault("sizes differ")
    if event.kind != "ALL_TO_ALL":
        _pieces_fit(event, outs, ins, group, me)
    out = [outs] if isinstance(outs, Tensor) else _list(outs, size)
    given = [ins] if isinstance(ins, Tensor) else _list(ins, size)
    return [*((t, "write") for t in out), *((t, "read") for t in given)]


def _list(value: Any, size: int) -> list[Tensor]:
    if len(items(value)) != size:
        raise Fault("an entry per member")
    return items(value)


def _pieces_fit(event: Event, outs: Any, ins: Any, group: Group, me: int) -> None:
    whole, piece = (outs, ins) if event.kind == "ALL_GATHER" else (ins, outs)
    if isinstance(whole, Tensor):
        fits = whole.index.size == piece.index.size * len(group)
    else:
        fits = _list(whole, len(group))[group.members.index(me)].index.size == piece.index.size
    if not fits:
        raise Fault("sizes differ")


def _split(tensor: Tensor, sizes: Any, size: int) -> list[Tensor]:
    rows = tensor.shape[0]
    if sizes is None:
        if rows % size:
            raise Fault("uneven")
        sizes = [rows // size] * size
    if len(sizes) != size or sum(sizes) != rows or min(sizes) < 0 or not tensor.contiguous():
        raise Fault("bad splits")
    ends = [sum(sizes[: i + 1]) for i in range(size)]
    return [tensor.get([slice(e - s, e)]) for s, e in zip(sizes, ends, strict=True)]


__all__ = ["DTypeName", "fill", "fill_extern", "group_of", "is_tensor", "shape_of"]
