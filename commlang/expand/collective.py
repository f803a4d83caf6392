"""The data of a collective: which views each rank gives and takes, and whether they fit.

What one rank can know is checked here (its own list has an entry per member, its own chunk has
the size of its output); whether the ranks agree is a question of matching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from commlang.expand import arrays
from commlang.expand.arrays import is_int
from commlang.expand.fault import fail
from commlang.expand.local import flatten
from commlang.expand.record import Operand
from commlang.expand.values import View, describe
from commlang.operations import Access, Kind, Operation
from commlang.records import record

if TYPE_CHECKING:
    from commlang.expand.arrays import Bool, Int
    from commlang.expand.scope import Scope
    from commlang.expand.statements import Evaluator
    from commlang.expand.values import Group
    from commlang.syntax import ast


@record
class Sizes:
    """One collective call being checked."""

    ev: Evaluator
    call: ast.Call
    operation: Operation
    nodes: dict[str, ast.Expr]
    values: dict[str, Any]
    group: Group
    root: Int
    scope: Scope

    def fail(self, name: str, code: str, text: str, lanes: Bool = True, **extra: Any) -> NoReturn:
        node = self.nodes.get(name, self.call)
        fail(self.scope, node, code, f"{self.operation.name}: {text}", lanes=lanes, **extra)

    def pair(self) -> tuple[str, str]:
        """The names of the output and the input of a collective that has both."""
        names = [a.name for a in self.operation.arguments if a.access]
        return names[0], names[1]

    def same_dtype(self, a: str, b: str, one: View, two: View) -> None:
        if one.dtype != two.dtype:
            text = f"`{a}` is {one.dtype} and `{b}` is {two.dtype}"
            self.fail(b, "CL113", text, hint="copy into a temp of the right dtype first")

    def listed(self, name: str) -> tuple[View, Int]:
        """The flat views of a list argument with one entry per member of the group."""
        sequence = self.values[name]
        size = self.group.length
        wrong = sequence.length != size
        if arrays.anywhere(wrong):
            lane = arrays.first_lane(wrong)
            have, want = arrays.lane(sequence.length, lane), arrays.lane(size, lane)
            text = f"`{name}` has {have} entries, the group {want} members"
            self.fail(name, "CL112", text, wrong)
        view, count = flatten(sequence, self.scope.lanes)
        if not isinstance(view, View):
            self.fail(name, "CL103", f"`{name}` is a list of tensors, not of {describe(view)}")
        return view, count

    def own_entry(self, sequence: Any) -> View:
        """The entry of a list at the rank's own place in the group."""
        index = self.group.table.position(self.group.gid, self.scope.ranks)
        return sequence.at(index)


def operands(call: Sizes) -> tuple[Operand, ...]:
    """The data of a collective, output first."""
    kind, values = call.operation.kind, call.values
    if kind is Kind.BARRIER:
        return ()
    if kind in (Kind.ALL_REDUCE, Kind.REDUCE, Kind.BROADCAST):
        access = Access.UPDATE
        return (Operand(values["tensor"], access),)
    if kind in (Kind.SCATTER, Kind.GATHER):
        return _rooted_list(call)
    if kind is Kind.ALL_TO_ALL:
        return _all_to_all(call)
    return _gathered(call)


def _rooted_list(call: Sizes) -> tuple[Operand, ...]:
    """scatter and gather: the list is given on the root and nowhere else."""
    scatter = call.operation.kind is Kind.SCATTER
    name = "scatter_list" if scatter else "gather_list"
    tensor: View = call.values["tensor"]
    own = Operand(tensor, Access.WRITE if scatter else Access.READ)
    is_root = call.root == call.scope.ranks
    end = "src" if scatter else "dst"
    if call.values.get(name) is None:
        if arrays.anywhere(is_root):
            hint = f"call it with the list where `rank == {end}`, without elsewhere"
            call.fail("", "CL102", f"the root needs `{name}`", is_root, hint=hint)
        return (own,)
    others = arrays.logical_not(is_root)
    if arrays.anywhere(others):
        hint = f"torch refuses that; write `if rank == …:` around, with no `{name}` in `else`"
        call.fail(
            name, "CL102", f"`{name}` is given on a rank that is not `{end}`", others, hint=hint
        )
    view, count = call.listed(name)
    call.same_dtype("tensor", name, tensor, view)
    owner = np.repeat(np.arange(call.scope.lanes), arrays.broadcast(count, call.scope.lanes))
    numel = tensor.numel
    per_item = numel[owner] if isinstance(numel, np.ndarray) else numel
    wrong = view.numel != per_item
    if arrays.anywhere(wrong):
        lanes = owner[wrong] if isinstance(wrong, np.ndarray) else 0
        text = f"an entry of `{name}` differs in size from `tensor`"
        call.fail(name, "CL112", text, np.isin(np.arange(call.scope.lanes), lanes))
    listed = Operand(view, Access.READ if scatter else Access.WRITE, count)
    return (own, listed) if scatter else (listed, own)


def _gathered(call: Sizes) -> tuple[Operand, ...]:
    """all_gather and reduce_scatter, with a list on the long side or one tensor."""
    output, source = call.pair()
    long, short = (output, source) if call.operation.kind is Kind.ALL_GATHER else (source, output)
    piece: View = call.values[short]
    whole = call.values[long]
    if isinstance(whole, View):
        wrong = whole.numel != arrays.multiply(piece.numel, call.group.length)
        _refuse(call, long, short, wrong, whole, piece)
        flat, count = whole, None
        call.same_dtype(short, long, piece, whole)
    else:
        flat, count = call.listed(long)
        call.same_dtype(short, long, piece, flat)
        entry = call.own_entry(whole)
        wrong = entry.numel != piece.numel
        if arrays.anywhere(wrong):
            lane = arrays.first_lane(wrong)
            have, want = arrays.lane(entry.numel, lane), arrays.lane(piece.numel, lane)
            text = f"the rank's own entry of `{long}` has {have} elements, `{short}` {want}"
            call.fail(long, "CL112", text, wrong)
    if long == output:
        return Operand(flat, Access.WRITE, count), Operand(piece, Access.READ)
    return Operand(piece, Access.WRITE), Operand(flat, Access.READ, count)


def _refuse(call: Sizes, long: str, short: str, wrong: Bool, whole: View, piece: View) -> None:
    if arrays.anywhere(wrong):
        lane = arrays.first_lane(wrong)
        sizes = [arrays.lane(v, lane) for v in (whole.numel, call.group.length, piece.numel)]
        text = (
            f"`{long}` has {sizes[0]} elements; {sizes[1]} ranks times the {sizes[2]} of "
            f"`{short}` make {sizes[1] * sizes[2]}"
        )
        hint = "for chunks of unequal size give a list, as in `x.chunks(world)`"
        call.fail(long, "CL112", text, wrong, hint=hint)


def _all_to_all(call: Sizes) -> tuple[Operand, ...]:
    output, source = call.pair()
    if call.operation.name == "all_to_all":
        out, out_count = call.listed(output)
        given, count = call.listed(source)
        call.same_dtype(output, source, out, given)
        return Operand(out, Access.WRITE, out_count), Operand(given, Access.READ, count)
    out, given = call.values[output], call.values[source]
    call.same_dtype(output, source, out, given)
    splits = ("output_split_sizes", "input_split_sizes")
    if not any(name in call.values for name in splits):
        for name, view in ((output, out), (source, given)):
            _even(call, name, view)
        wrong = out.numel != given.numel
        if arrays.anywhere(wrong):
            call.fail(source, "CL112", f"`{output}` and `{source}` differ in size", wrong)
        return Operand(out, Access.WRITE), Operand(given, Access.READ)
    return (
        _split(call, output, out, splits[0], Access.WRITE),
        _split(call, source, given, splits[1], Access.READ),
    )


def _even(call: Sizes, name: str, view: View) -> None:
    rows = view.shape[0] if view.shape else 1
    uneven = arrays.modulo(rows, call.group.length) != 0
    if arrays.anywhere(uneven):
        text = f"dim 0 of `{name}` does not divide evenly among the ranks"
        call.fail(name, "CL112", text, uneven, hint="give input_split_sizes and output_split_sizes")


def _split(call: Sizes, name: str, view: View, splits: str, access: Access) -> Operand:
    """A tensor cut along dim 0 into one part per member of the group."""
    lanes = call.scope.lanes
    rows: Int = view.shape[0] if view.shape else 1
    size = call.group.length
    counts = arrays.broadcast(size, lanes)
    owner = np.repeat(np.arange(lanes), counts)
    if call.values.get(splits) is None:
        _even(call, name, view)
        part = arrays.broadcast(arrays.floor_divide(rows, size), lanes)[owner]
    else:
        part = _split_sizes(call, splits, len(owner))
    row = arrays.floor_divide(view.numel, arrays.maximum(rows, 1))
    ends = np.cumsum(part)
    before = ends - part
    lane_start = np.cumsum(counts) - counts
    start = before - np.repeat(before[lane_start], counts)
    given = start[lane_start + counts - 1] + part[lane_start + counts - 1]
    wrong = given != rows
    if arrays.anywhere(wrong):
        lane = int(np.argmax(wrong))
        text = (
            f"`{splits}` sums to {int(given[lane])}, dim 0 of `{name}` is {arrays.lane(rows, lane)}"
        )
        call.fail(splits, "CL112", text, wrong)
    per_row = arrays.broadcast(row, lanes)[owner]
    offset = arrays.broadcast(view.offset, lanes)[owner] + start * per_row
    buffer = arrays.broadcast(view.buffer, lanes)[owner]
    _contiguous_whole(call, name, view)
    flat = View(buffer, offset, (part * per_row,), (1,), view.dtype)
    return Operand(flat, access, size)


def _contiguous_whole(call: Sizes, name: str, view: View) -> None:
    strided = arrays.logical_not(view.contiguous())
    if arrays.anywhere(strided):
        call.fail(name, "CL119", f"`{name}` must be contiguous", strided)


def _split_sizes(call: Sizes, name: str, expected: int) -> Any:
    """The split sizes on lanes of (rank, member), all of them 0 or more."""
    sequence = call.values[name]
    wrong = sequence.length != call.group.length
    if arrays.anywhere(wrong):
        text = f"`{name}` has one size per member of the group"
        call.fail(name, "CL112", text, wrong)
    flat, _ = flatten(sequence, call.scope.lanes)
    if not is_int(flat):
        call.fail(name, "CL103", f"`{name}` is a list of ints, not of {describe(flat)}")
    part = arrays.broadcast(flat, expected)
    if part.size and int(part.min()) < 0:
        call.fail(name, "CL112", f"`{name}` holds a negative size")
    return part
