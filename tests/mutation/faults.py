"""Kinds of faults that people make, each applied wherever a pattern's text allows it.

A fault changes what a pattern does: the statements of its body and the declarations of its temps.
Contracts, presets, `require` and the `let`s that contracts use stay as they are, since they say
what was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from commlang.resolve.modules import Definition

Edit = tuple[int, int, str]
"""Start and end in the text, and what stands there instead."""

_FIXED = (ast.Ensure, ast.Require, ast.Preset)
_ROOTED = ("broadcast", "reduce", "scatter", "gather")
_MESSAGES = ("send", "recv")
_LOCAL = ("fill", "scale", "compute")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault at one place."""

    kind: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A pattern as the faults see it."""

    text: str
    pattern: ast.Pattern
    statements: list[ast.Stmt]
    """All statements that may be changed, at any depth."""
    blocks: list[tuple[ast.Stmt, ...]]
    tensors: list[str]
    """Names that stand for tensors."""
    groups: list[str]

    def of(self, node: ast.Node) -> str:
        return self.text[node.span.start : node.span.end]

    def swap(self, one: ast.Node, other: ast.Node) -> list[Edit]:
        (a, b), (c, d) = _whole(one), _whole(other)
        return [(a, b, self.text[c:d]), (c, d, self.text[a:b])]

    def nodes(self) -> Iterator[ast.Node]:
        """What the statements are made of, but for the statements inside them."""
        for statement in self.statements:
            yield from _own(statement)

    def calls(self, names: Iterable[str] = ()) -> Iterator[ast.Call]:
        for statement in self.statements:
            inner = statement.operation if isinstance(statement, ast.Async) else statement
            if isinstance(inner, ast.CallStatement) and (
                not names or self.of(inner.call.func) in names
            ):
                yield inner.call

    def transfers(self) -> Iterator[ast.Transfer]:
        for statement in self.statements:
            inner = statement.operation if isinstance(statement, ast.Async) else statement
            if isinstance(inner, ast.Transfer):
                yield inner


def mutants(definition: Definition) -> list[Mutant]:
    """Every mutant of a pattern, each text once, in the order of kinds and places."""
    assert isinstance(definition.node, ast.Pattern)
    text = definition.module.source.text
    place = _look(text, definition.node)
    seen = {text}
    found: list[Mutant] = []
    for kind, make in KINDS.items():
        for edits in make(place):
            mutated = _edited(text, edits)
            if mutated not in seen:
                seen.add(mutated)
                line = text.count("\n", 0, min(start for start, _, _ in edits)) + 1
                found.append(Mutant(kind, line, mutated))
    return found


def _edited(text: str, edits: list[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _look(text: str, pattern: ast.Pattern) -> _Place:
    promised = " ".join(
        text[s.span.start : s.span.end] for s in pattern.body if isinstance(s, _FIXED)
    )
    kept = set(re.findall(r"\w+", promised))
    statements: list[ast.Stmt] = []
    blocks: list[tuple[ast.Stmt, ...]] = []

    def visit(block: tuple[ast.Stmt, ...]) -> None:
        free = tuple(s for s in block if not _fixed(s, kept))
        blocks.append(free)
        for statement in free:
            statements.append(statement)
            for inner in _blocks(statement):
                visit(inner)

    visit(pattern.body)
    temps = [s.target.id for s in statements if isinstance(s, ast.Temp)]
    tensors = [p.target.id for p in pattern.params if p.type and p.type.shape is not None]
    groups = [s.target.id for s in pattern.body if isinstance(s, ast.Group)]
    meshes = [a.name for s in pattern.body if isinstance(s, ast.Mesh) for a in s.axes]
    return _Place(text, pattern, statements, blocks, tensors + temps, groups + meshes)


def _fixed(statement: ast.Stmt, kept: set[str]) -> bool:
    """Whether a statement is part of what was meant."""
    if isinstance(statement, _FIXED):
        return True
    named = isinstance(statement, ast.Let | ast.LetFunction | ast.Group)
    return (named and statement.target.id in kept) or (
        isinstance(statement, ast.Mesh) and any(axis.name in kept for axis in statement.axes)
    )


def _blocks(statement: ast.Stmt) -> list[tuple[ast.Stmt, ...]]:
    if isinstance(statement, ast.If):
        return [branch.body for branch in statement.branches]
    return [statement.body] if isinstance(statement, ast.For | ast.Parallel | ast.Sequence) else []


def _own(statement: ast.Stmt) -> Iterator[ast.Node]:
    """The expressions of a statement, without those of the statements inside it."""
    if isinstance(statement, ast.If):
        heads: list[ast.Node | None] = [branch.condition for branch in statement.branches]
    elif isinstance(statement, ast.For | ast.Parallel):
        heads = [statement.iterable]
    elif isinstance(statement, ast.Sequence):
        heads = []
    else:
        heads = [statement]
    for head in heads:
        if head is not None:
            yield from walk(head)


def _replace(node: ast.Node, new: str) -> list[Edit]:
    return [(node.span.start, node.span.end, new)]


def _whole(node: ast.Node) -> tuple[int, int]:
    """From a node's first character to the last of all below it: a block's span is its head."""
    return node.span.start, max(part.span.end for part in walk(node))


_SHIFT = " + 1) % world"


def _next(place: _Place, node: ast.Node) -> list[Edit]:
    """The rank after that one."""
    return _replace(node, f"({place.of(node)}{_SHIFT}")


# ---------------------------------------------------------------------- statements


def _swap_statements(place: _Place) -> Iterator[list[Edit]]:
    movable = (ast.CallStatement, ast.Transfer, ast.Async, ast.Wait, ast.For, ast.Parallel, ast.If)
    for block in place.blocks:
        for one, other in pairwise(block):
            if isinstance(one, movable) and isinstance(other, movable):
                yield place.swap(one, other)


def _drop(place: _Place) -> Iterator[list[Edit]]:
    for statement in place.statements:
        if isinstance(statement, ast.CallStatement | ast.Transfer | ast.Async):
            yield _replace(statement, "pass")


def _duplicate(place: _Place) -> Iterator[list[Edit]]:
    for statement in place.statements:
        if isinstance(statement, ast.CallStatement | ast.Transfer):
            start = statement.span.start
            indent = place.text[place.text.rfind("\n", 0, start) + 1 : start]
            yield _replace(statement, f"{place.of(statement)}\n{indent}{place.of(statement)}")


def _remove_wait(place: _Place) -> Iterator[list[Edit]]:
    for statement in place.statements:
        if isinstance(statement, ast.Wait):
            yield _replace(statement, "pass")


def _blocking(place: _Place) -> Iterator[list[Edit]]:
    for statement in place.statements:
        if isinstance(statement, ast.Async):
            yield _replace(statement, place.of(statement.operation))


def _drop_parallel(place: _Place) -> Iterator[list[Edit]]:
    for statement in place.statements:
        if isinstance(statement, ast.Parallel):
            word = "" if statement.iterable is not None else "sequence"
            start = statement.span.start
            end = start + len("parallel") + (not word)
            yield [(start, end, word)]


# ---------------------------------------------------------------------- arguments


def _keyword(call: ast.Call | ast.Transfer, *names: str) -> ast.Keyword | None:
    return next((k for k in call.keywords if k.name in names), None)


def _tag(place: _Place) -> Iterator[list[Edit]]:
    for call in place.calls(_MESSAGES):
        tag = _keyword(call, "tag")
        if tag is not None:
            yield _replace(tag.value, f"{place.of(tag.value)} + 1")
        else:
            yield [(call.span.end - 1, call.span.end - 1, ", tag=1")]
    for transfer in place.transfers():
        if transfer.source.rank is not None:
            yield [(transfer.span.end, transfer.span.end, ", tag=rank")]


def _root(place: _Place) -> Iterator[list[Edit]]:
    for call in place.calls(_ROOTED):
        root = _keyword(call, "src", "dst")
        if root is not None:
            yield _next(place, root.value)
            yield _replace(root.value, "rank")
    for node in place.nodes():
        if isinstance(node, ast.Keyword) and node.name == "root":
            yield _next(place, node.value)


def _peer(place: _Place) -> Iterator[list[Edit]]:
    for call in place.calls(_MESSAGES):
        peer = _keyword(call, "src", "dst")
        if peer is not None:
            yield _next(place, peer.value)
            turned = {"ranks.next": "ranks.prev", "ranks.prev": "ranks.next"}
            if place.of(peer.value) in turned:
                yield _replace(peer.value, turned[place.of(peer.value)])
    for transfer in place.transfers():
        for end in (transfer.source, transfer.target):
            if end.rank is not None:
                yield _next(place, end.rank)


def _op(place: _Place) -> Iterator[list[Edit]]:
    for node in place.nodes():
        if isinstance(node, ast.Keyword) and node.name == "op":
            other = "sum" if place.of(node.value) == "max" else "max"
            yield _replace(node.value, other)


def _dtype(place: _Place) -> Iterator[list[Edit]]:
    for statement in place.statements:
        if isinstance(statement, ast.Temp):
            shape = place.of(statement.type) if statement.type else ""
            if statement.type is not None:
                yield _replace(statement.type, "float64" + shape[len(statement.type.name) :])
            elif statement.like is not None:
                start = place.text.rfind("like", 0, statement.like.span.start)
                like = place.of(statement.like)
                yield [(start, statement.like.span.end, f"float64[{like}.numel]")]


def _size(place: _Place) -> Iterator[list[Edit]]:
    """A message or collective of one element less."""
    for call in place.calls():
        name = place.of(call.func)
        if name in OPERATED and call.args and not isinstance(call.args[0], ast.ListExpr):
            first = place.of(call.args[0])
            yield _replace(call.args[0], f"{first}.flatten()[:{first}.numel - 1]")
    for transfer in place.transfers():
        if transfer.source.rank is None:
            continue
        for end in (transfer.source, transfer.target):
            value = place.of(end.value)
            yield _replace(end.value, f"{value}[:{value}.numel - 1]")


def _group(place: _Place) -> Iterator[list[Edit]]:
    for call in place.calls():
        group = _keyword(call, "group")
        if group is None:
            continue
        for other in place.groups:
            if other != place.of(group.value):
                yield _replace(group.value, other)
        yield _replace(group.value, "ranks")


def _send_recv(place: _Place) -> Iterator[list[Edit]]:
    for call in place.calls(_MESSAGES):
        name, peer = place.of(call.func), _keyword(call, "src", "dst")
        if peer is None:
            continue
        new = "recv" if name == "send" else "send"
        start = peer.span.start
        yield [
            *_replace(call.func, new),
            (start, start + 3, "src" if new == "recv" else "dst"),
        ]


def _buffer(place: _Place) -> Iterator[list[Edit]]:
    """Another tensor in an operation, as it is indexed there."""
    for statement in place.statements:
        inner = statement.operation if isinstance(statement, ast.Async) else statement
        if not isinstance(inner, ast.CallStatement | ast.Transfer):
            continue
        for node in walk(inner):
            if isinstance(node, ast.Name) and node.id in place.tensors:
                for other in place.tensors:
                    if other != node.id:
                        yield _replace(node, other)


def _value(place: _Place) -> Iterator[list[Edit]]:
    for call in place.calls(_LOCAL):
        if place.of(call.func) != "compute" and len(call.args) == 2:
            yield _replace(call.args[1], f"{place.of(call.args[1])} + 1")


def _wait_early(place: _Place) -> Iterator[list[Edit]]:
    """Wait for the wrong one of several."""
    for statement in place.statements:
        if isinstance(statement, ast.Wait) and isinstance(statement.handle, ast.Index):
            sub = statement.handle.subs[-1]
            yield _replace(sub, f"{place.of(sub)} + 1")


OPERATED = (
    *_MESSAGES,
    *_ROOTED,
    *("all_reduce", "all_gather_into_tensor", "all_gather_single", "reduce_scatter_tensor"),
    *("reduce_scatter_single", "all_to_all_single", "fill", "scale"),
)


# ------------------------------------------------------------------------- arrows


def _accumulate(place: _Place) -> Iterator[list[Edit]]:
    for transfer in place.transfers():
        for keyword in transfer.keywords:
            if keyword.name == "op":
                start = place.text.rfind(",", 0, keyword.span.start)
                yield [(start, keyword.span.end, "")]


def _arrow(place: _Place) -> Iterator[list[Edit]]:
    for transfer in place.transfers():
        yield place.swap(transfer.source, transfer.target)
        if transfer.source.rank is not None and transfer.target.rank is not None:
            yield place.swap(transfer.source.rank, transfer.target.rank)


def _into(place: _Place) -> Iterator[list[Edit]]:
    """Adds where it should copy."""
    for transfer in place.transfers():
        if not any(k.name == "op" for k in transfer.keywords):
            yield [(transfer.span.end, transfer.span.end, ", op=sum")]


# --------------------------------------------------------------------- expressions


def _bound(place: _Place) -> Iterator[list[Edit]]:
    for statement in place.statements:
        if isinstance(statement, ast.For | ast.Parallel) and statement.iterable is not None:
            for node in walk(statement.iterable):
                if isinstance(node, ast.Call) and place.of(node.func) == "range":
                    last = node.args[min(1, len(node.args) - 1)]
                    yield _replace(last, f"{place.of(last)} - 1")
                    yield _replace(last, f"{place.of(last)} + 1")
                elif isinstance(node, ast.Name) and node.id == "ranks":
                    yield _replace(node, "ranks[1:]")


def _index(place: _Place) -> Iterator[list[Edit]]:
    """The wrong chunk: one further, or the other way round."""
    for node in place.nodes():
        if isinstance(node, ast.Binary) and node.op == "%":
            yield _replace(node.left, f"({place.of(node.left)} + 1)")
            inner = node.left.inner if isinstance(node.left, ast.Paren) else node.left
            if isinstance(inner, ast.Binary) and inner.op in "+-":
                new = "-" if inner.op == "+" else "+"
                yield _replace(inner, f"{place.of(inner.left)} {new} {place.of(inner.right)}")
        elif isinstance(node, ast.Index) and len(node.subs) == 1:
            sub = node.subs[0]
            if not isinstance(sub, ast.Slice) and place.of(node.base) in ("work", "rows", "x"):
                yield _replace(sub, f"({place.of(sub)} + 1) % world")


def _slice(place: _Place) -> Iterator[list[Edit]]:
    for node in place.nodes():
        if isinstance(node, ast.Slice):
            for end in (node.low, node.high):
                if end is not None:
                    yield _replace(end, f"{place.of(end)} + 1")
                    yield _replace(end, f"{place.of(end)} - 1")


def _number(place: _Place) -> Iterator[list[Edit]]:
    for node in place.nodes():
        if isinstance(node, ast.Number) and not node.unit:
            yield _replace(node, f"({node.text} + 1)")
            if node.value:
                yield _replace(node, f"({node.text} - 1)")


_TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def _condition(place: _Place) -> Iterator[list[Edit]]:
    for node in place.nodes():
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and node.ops[0] in _TURNED:
            left, right = (place.of(operand) for operand in node.operands)
            yield _replace(node, f"{left} {_TURNED[node.ops[0]]} {right}")
    for statement in place.statements:
        if isinstance(statement, ast.If):
            for branch in statement.branches:
                if branch.condition is not None:
                    yield _replace(branch.condition, f"not ({place.of(branch.condition)})")


def _minmax(place: _Place) -> Iterator[list[Edit]]:
    turned = {"min": "max", "max": "min"}
    for node in place.nodes():
        if isinstance(node, ast.Call) and place.of(node.func) in turned:
            yield _replace(node.func, turned[place.of(node.func)])


KINDS: dict[str, Callable[[_Place], Iterator[list[Edit]]]] = {
    "swap two statements": _swap_statements,
    "drop a statement": _drop,
    "say it twice": _duplicate,
    "change a tag": _tag,
    "change a root": _root,
    "change a peer": _peer,
    "change a reduce op": _op,
    "change a dtype": _dtype,
    "change a size": _size,
    "change a group": _group,
    "remove a wait": _remove_wait,
    "wait for another": _wait_early,
    "block instead of async": _blocking,
    "use another buffer": _buffer,
    "drop parallel": _drop_parallel,
    "index off by one": _index,
    "slice off by one": _slice,
    "loop bound off by one": _bound,
    "swap send and recv": _send_recv,
    "drop an accumulation": _accumulate,
    "add instead of copy": _into,
    "turn an arrow round": _arrow,
    "wrong initial value": _value,
    "wrong condition": _condition,
    "min for max": _minmax,
    "constant off by one": _number,
}
