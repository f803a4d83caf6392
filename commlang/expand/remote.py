"""Communication: messages, collectives and transfers between ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.expand import arrays
from commlang.expand.collective import Sizes, operands
from commlang.expand.fault import fail
from commlang.expand.local import accumulate, arrow, arrow_op, match_arguments, tensor
from commlang.expand.record import Handle, Nest, Operand
from commlang.expand.values import SEQUENCES, Group, Op, Value, View, describe
from commlang.operations import Access, Kind, Operation, ReduceOp

if TYPE_CHECKING:
    from commlang.expand.arrays import Int
    from commlang.expand.scope import Scope
    from commlang.expand.statements import Evaluator
    from commlang.syntax import ast


def operation(
    ev: Evaluator,
    call: ast.Call,
    operation: Operation,
    scope: Scope,
    nest: Nest | None,
    handle: Handle | None,
) -> None:
    """A send, a recv or a collective, on every rank that runs the line."""
    given = match_arguments(ev, call, operation, scope)
    group = ev.frame_ranks(scope)
    if "group" in given:
        group = ev.member_group(given["group"], scope)
    if operation.kind.is_message:
        _message(ev, call, operation, given, group, scope, nest, handle)
        return
    values = {n: _data(ev, operation, n, node, scope) for n, node in given.items()}
    root: Int = -1
    if operation.kind.is_rooted:
        root = _root(ev, call, operation, given, group, scope)
    sizes = Sizes(ev, call, operation, given, values, group, root, scope)
    op = _op(ev, operation, given, scope)
    listed = operands(sizes)
    for operand in listed:
        _contiguous(call, operand, scope, operation.name)
    ev.emit(
        scope,
        nest,
        operation.kind,
        operation.name,
        call,
        handle=handle,
        op=op,
        dtype=listed[0].view.dtype if listed else None,
        group=group.gid,
        peer=root,
        operands=listed,
    )


def _data(ev: Evaluator, operation: Operation, name: str, node: ast.Expr, scope: Scope) -> Value:
    """The value of a data argument: a tensor or a list, as the operation wants it."""
    argument = operation.argument(name)
    assert argument is not None
    if argument.type == "tensor":
        return tensor(ev, node, scope, f"`{name}` of {operation.name}")
    if argument.type not in ("tensors", "ints"):
        return None
    value = ev.eval(node, scope)
    if isinstance(value, SEQUENCES) and not isinstance(value, Group):
        return value
    hint = None
    if isinstance(value, View) and argument.type == "tensors":
        text = scope.frame.module.source.excerpt(node.span)
        hint = f"cut it: `{text}.chunks(world)`"
    message = f"`{name}` of {operation.name} is a list, not {describe(value)}"
    fail(scope, node, "CL103", message, hint=hint)


def _op(ev: Evaluator, operation: Operation, given: dict[str, ast.Expr], scope: Scope) -> Op | None:
    if operation.argument("op") is None:
        return None
    if "op" not in given:
        return Op(ReduceOp.SUM)
    value = ev.eval(given["op"], scope)
    if not isinstance(value, Op):
        fail(scope, given["op"], "CL103", f"`op` is a reduce op, not {describe(value)}")
    if value.op is ReduceOp.PREMUL_SUM and value.factor is None:
        fail(scope, given["op"], "CL102", "premul_sum needs its factor: `premul_sum(0.5)`")
    return value


# --------------------------------------------------------------- ranks of peers


def _end_argument(
    call: ast.Call, operation: Operation, given: dict[str, ast.Expr], scope: Scope
) -> str:
    """Which of `dst`/`src`/`group_dst`/`group_src` the call gives; the plain one if none."""
    names = [a.name for a in operation.arguments if a.type == "rank"]
    present = [n for n in names if n in given]
    if len(present) > 1:
        message = f"`{present[0]}` and `{present[1]}` name the same rank; give one"
        fail(scope, call, "CL102", message)
    if present:
        return present[0]
    default = {Kind.SCATTER: True, Kind.GATHER: True}.get(operation.kind, False)
    if not default:
        fail(scope, call, "CL102", f"`{operation.name}` needs `{names[0]}`")
    return ""


def _global_rank(
    ev: Evaluator,
    call: ast.Node,
    node: ast.Expr | None,
    name: str,
    group: Group,
    scope: Scope,
) -> Int:
    """The world's rank that an argument names, which must be a member of the group."""
    value: Int = 0 if node is None else ev.integer(node, scope, f"`{name}`")
    return checked_rank(ev, node or call, value, name, group, scope)


def checked_rank(
    ev: Evaluator, node: ast.Node, value: Int, name: str, group: Group, scope: Scope
) -> Int:
    """The world's rank of a rank of the pattern (or, for group_*, of the group)."""
    ranks = ev.frame_ranks(scope)
    within = Group(group.gid, group.table, group.gid) if name.startswith("group_") else ranks
    size = within.length
    what = name if " " in name else f"`{name}`"
    bad = (value < 0) | (value >= size)
    if arrays.anywhere(bad):
        lane = arrays.first_lane(bad)
        rank, many = arrays.lane(value, lane), arrays.lane(size, lane)
        message = f"{what} is rank {rank}, but the ranks are 0 to {many - 1}"
        hint = "a rank does not wrap round; write `% world`, or `ranks.next` and `ranks.prev`"
        fail(scope, node, "CL116", message, lanes=bad, hint=hint)
    world = within.table.member(within.gid, value)
    outside = group.table.position(group.gid, world) < 0
    if arrays.anywhere(outside):
        lane = arrays.first_lane(outside)
        message = f"{what} is rank {arrays.lane(value, lane)}, which is not in the group"
        hint = "ranks are those of the pattern, also with `group=`; `g[i]` is member i of g"
        fail(scope, node, "CL116", message, lanes=outside, hint=hint)
    return world


def _root(
    ev: Evaluator,
    call: ast.Call,
    operation: Operation,
    given: dict[str, ast.Expr],
    group: Group,
    scope: Scope,
) -> Int:
    name = _end_argument(call, operation, given, scope)
    label = name or next(a.name for a in operation.arguments if a.type == "rank")
    return _global_rank(ev, call, given.get(name), label, group, scope)


# --------------------------------------------------------------------- messages


def _message(
    ev: Evaluator,
    call: ast.Call,
    operation: Operation,
    given: dict[str, ast.Expr],
    group: Group,
    scope: Scope,
    nest: Nest | None,
    handle: Handle | None,
) -> None:
    view = tensor(ev, given["tensor"], scope, f"`tensor` of {operation.name}")
    name = _end_argument(call, operation, given, scope)
    peer = _global_rank(ev, call, given[name], name, group, scope)
    own = peer == scope.ranks
    if arrays.anywhere(own):
        hint = "no backend can do that; copy locally with `x -> y`"
        message = f"`{name}` is the rank itself"
        fail(scope, given[name], "CL117", message, lanes=own, hint=hint)
    tag: Int = ev.integer(given["tag"], scope, "`tag`") if "tag" in given else 0
    _tag(given.get("tag", call), tag, scope)
    access = Access.READ if operation.kind is Kind.SEND else Access.WRITE
    operand = Operand(view, access)
    _contiguous(call, operand, scope, operation.name)
    ev.emit(
        scope,
        nest,
        operation.kind,
        operation.name,
        call,
        handle=handle,
        dtype=view.dtype,
        group=group.gid,
        peer=peer,
        tag=tag,
        operands=(operand,),
    )


def _tag(node: ast.Node, tag: Int, scope: Scope) -> None:
    bad = (tag < 0) | (tag >= 1 << 31)
    if arrays.anywhere(bad):
        fail(scope, node, "CL102", "a tag is an int from 0 to 2**31 - 1", lanes=bad)


def _contiguous(node: ast.Node, operand: Operand, scope: Scope, name: str) -> None:
    strided = arrays.logical_not(operand.view.contiguous())
    if arrays.anywhere(strided):
        if operand.count is not None:
            strided = True
        message = f"{name} needs contiguous data, and this view is strided"
        hint = "copy it first: `temp packed: like …`, then `view -> packed`"
        fail(scope, node, "CL119", message, lanes=strided, hint=hint)


# -------------------------------------------------------------------- transfers


def transfer(
    ev: Evaluator, node: ast.Transfer, scope: Scope, nest: Nest | None, handle: Handle | None
) -> None:
    """`x -> y` on each rank, or `x @ a -> y @ b` from one rank to another."""
    op, tag = arrow_op(ev, node, scope)
    source, target = node.source, node.target
    if source.rank is None and target.rank is None:
        if handle is not None:
            fail(scope, node, "CL104", "a local copy cannot be async")
        arrow(ev, node, op, scope, nest)
        return
    if source.rank is None or target.rank is None:
        side = "left" if source.rank is None else "right"
        hint = "write `x @ a -> y @ b` for a message, `x -> y` for a local copy"
        message = f"both ends of an arrow name a rank or neither does; the {side} one does not"
        fail(scope, node, "CL102", message, hint=hint)
    if handle is not None and op is not None:
        hint = "receive into a temp, wait, then accumulate"
        fail(scope, node, "CL104", "an accumulating transfer cannot be async", hint=hint)
    _tag(node, tag, scope)
    start = _endpoint(ev, source, "the sending rank", scope)
    end = _endpoint(ev, target, "the receiving rank", scope)
    same = start == end
    if arrays.anywhere(same):
        hint = "no backend can do that; copy locally with `x -> y`"
        fail(scope, node, "CL117", "a rank sends to itself", lanes=same, hint=hint)
    _half(ev, node, Kind.SEND, source, start, end, tag, None, scope, nest, handle)
    _half(ev, node, Kind.RECV, target, end, start, tag, op, scope, nest, handle)


def _endpoint(ev: Evaluator, place: ast.Place, what: str, scope: Scope) -> Int:
    """The world's rank of one end, which all ranks must agree on."""
    assert place.rank is not None
    value = ev.integer(place.rank, scope, what)
    differs = ev.differs(value, scope)
    if arrays.anywhere(differs):
        hint = "`@` names one rank; for all at once: `parallel for r in ranks: x @ r -> y @ …`"
        message = f"{what} differs between the ranks that run this line"
        fail(scope, place.rank, "CL127", message, lanes=differs, hint=hint)
    return checked_rank(ev, place.rank, value, what, ev.frame_ranks(scope), scope)


def _half(
    ev: Evaluator,
    node: ast.Transfer,
    kind: Kind,
    place: ast.Place,
    own: Int,
    peer: Int,
    tag: Int,
    op: Op | None,
    scope: Scope,
    nest: Nest | None,
    handle: Handle | None,
) -> None:
    """One end of a transfer, on the lanes of the rank at that end."""
    here = np.flatnonzero(scope.ranks == own)
    inner = scope.narrow(here)
    if len(here):
        view = tensor(ev, place.value, inner, "what an arrow moves")
        target = view
        if op is not None:
            view = ev.allocate("inbox", view.dtype, view.shape, node, inner, nest)
        operand = Operand(view, Access.READ if kind is Kind.SEND else Access.WRITE)
        _contiguous(node, operand, inner, "a transfer")
        ev.emit(
            inner,
            nest,
            kind,
            "send" if kind is Kind.SEND else "recv",
            node,
            handle=handle,
            dtype=view.dtype,
            group=_on(ev.frame_ranks(scope).gid, here),
            peer=_on(peer, here),
            tag=_on(tag, here),
            operands=(operand,),
        )
        if op is not None:
            after = nest if nest is not None and not nest.sequence else None
            outside = after.parent if after is not None else nest
            accumulate(ev, node, view, target, op, inner, outside, deferred=after)
    scope.slots += inner.slots


def _on(value: Int, lanes: Any) -> Int:
    return value[lanes] if isinstance(value, np.ndarray) else value
