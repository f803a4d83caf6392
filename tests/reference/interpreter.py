"""The reference interpreter: one rank at a time, one statement after the other, plain lists.

It says once more, in the most naive way, what `commlang.expand` computes for all ranks and
iterations at once; the tests compare the two event by event.
"""

from __future__ import annotations

import itertools
import math
from collections import ChainMap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commlang.dtypes import DTYPES
from commlang.operations import OPERATIONS
from commlang.syntax import ast
from tests.reference import calls
from tests.reference.expressions import Names, bind, evaluate
from tests.reference.values import Buffer, Closure, Construct, Event, Fault, Group, Tensor, items

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.resolve.modules import Definition


@dataclass(eq=False)
class Frame:
    """One call of a pattern on one rank."""

    definition: Definition
    ranks: Group
    calls: tuple[Any, ...]
    outstanding: list[tuple[str, tuple[int, ...], Event]] = field(
        default_factory=list[tuple[str, tuple[int, ...], Event]]
    )


def interpret(
    definition: Definition, world: int, rank: int, values: Mapping[str, Any] | None = None
) -> list[Event]:
    """The events of one rank in program order; raises Fault for what must not be."""
    everyone = tuple(range(world))
    run = Run(rank)
    frame = Frame(definition, Group("world", everyone, everyone), ())
    names = run.enter(frame)
    for name, value in (values or {}).items():
        names[name] = value
    run.bind_parameters(definition.node, {}, names, values or {}, allocate=True)
    run.block(definition.node.body, names, frame, None)
    return run.events


class Run:
    """Everything that one rank does."""

    def __init__(self, rank: int) -> None:
        self.me = rank
        self.events: list[Event] = []

    def enter(self, frame: Frame) -> Names:
        """The names that every pattern knows."""
        members = frame.ranks.members
        own = Group(frame.ranks.label, members, members)
        return ChainMap({"ranks": own, "world": len(members), "rank": members.index(self.me)})

    # -------------------------------------------------------------- parameters

    def bind_parameters(
        self,
        node: ast.Pattern | ast.Extern,
        given: dict[str, Any],
        names: Names,
        bound: Mapping[str, Any],
        *,
        allocate: bool = False,
    ) -> None:
        """Given scalars, then sizes from shapes, then defaults; last, shapes must agree."""
        names.update(given)
        done = {*bound, *given}
        for param in node.params:
            if param.target.id in done:
                _bind_sizes(param, names, done)
        for param in node.params:
            name = param.target.id
            if name in done or calls.is_tensor(param) or param.default is None:
                continue
            names[name] = evaluate(param.default, names)
            _bind_sizes(param, names, done)
        for param in node.params:
            if param.type is None or param.type.shape is None:
                continue
            name = param.target.id
            if calls.is_tensor(param) and name not in done:
                if not allocate:
                    raise Fault("a tensor is missing")
                names[name] = self.tensor(name, param.type, names)
            want = tuple(evaluate(dim, names) for dim in param.type.shape)
            if want != calls.shape_of(names[name]):
                raise Fault("a shape differs")

    def tensor(self, name: str, kind: ast.TypeRef, names: Names) -> Tensor:
        dtype = kind.name if kind.name in DTYPES else names[kind.name].name
        return Tensor.new(name, dtype, tuple(evaluate(dim, names) for dim in kind.shape or ()))

    # -------------------------------------------------------------- statements

    def block(self, body: Any, names: Names, frame: Frame, nest: Construct | None) -> None:
        for statement in body:
            self.statement(statement, names, frame, nest)

    def statement(  # noqa: C901 (one case per construct)
        self, node: Any, names: Names, frame: Frame, nest: Construct | None
    ) -> None:
        match node:
            case ast.Let(_, target, value):
                names[target.id] = evaluate(value, names)
            case ast.LetFunction(_, target):
                names[target.id] = Closure(node, names)
            case ast.Temp(_, target, None, like):
                like = evaluate(like, names)
                names[target.id] = Tensor.new(target.id, like.buffer.dtype, like.shape)
            case ast.Temp(_, target, kind):
                assert kind is not None
                names[target.id] = self.tensor(target.id, kind, names)
            case ast.Group(_, target, value):
                names[target.id] = self.group(target.id, evaluate(value, names), frame)
            case ast.Mesh():
                self.mesh(node, names, frame)
            case ast.Require(_, condition):
                if not evaluate(condition, names):
                    raise Fault("required")
            case ast.For(_, targets, iterable, body):
                for value in items(evaluate(iterable, names)):
                    self.block(body, bind(targets, value, names), frame, nest)
            case ast.If(_, branches):
                for branch in branches:
                    if branch.condition is None or evaluate(branch.condition, names):
                        self.block(branch.body, names.new_child(), frame, nest)
                        break
            case ast.Parallel():
                self.parallel(node, names, frame, nest)
            case ast.Sequence(_, body):
                self.block(body, names.new_child(), frame, branch_of(nest))
            case ast.CallStatement(_, call):
                self.call(call, names, frame, nest, None)
            case ast.Transfer():
                self.transfer(node, names, frame, nest, None)
            case ast.Async(_, handle, ast.Transfer() as transfer):
                self.transfer(transfer, names, frame, nest, self.handle(handle, names))
            case ast.Async(_, handle, ast.CallStatement(_, call)):
                self.call(call, names, frame, nest, self.handle(handle, names))
            case ast.Wait(_, handle):
                self.wait(node, handle, names, frame, nest)
            case ast.Pass() | ast.Preset() | ast.Ensure() | ast.Assume():
                pass
            case _:
                raise AssertionError(node)

    def parallel(
        self, node: ast.Parallel, names: Names, frame: Frame, nest: Construct | None
    ) -> None:
        outermost = nest is None or nest.sequence
        construct = Construct(sequence=False, parent=nest) if outermost else nest
        rounds = [None] if node.iterable is None else items(evaluate(node.iterable, names))
        for value in rounds:
            inner = names.new_child() if node.iterable is None else bind(node.targets, value, names)
            self.block(node.body, inner, frame, construct)
        if outermost and construct is not None:
            self.events += construct.deferred

    def group(self, name: str, value: Any, frame: Frame) -> Group:
        chosen, ranks = items(value), frame.ranks.members
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= {*range(len(ranks))}:
            raise Fault("no group")
        label = f"{frame.definition.node.name}.{name}"
        return Group(label, tuple(ranks[i] for i in chosen), ranks)

    def mesh(self, node: ast.Mesh, names: Names, frame: Frame) -> None:
        sizes = [evaluate(axis.value, names) for axis in node.axes]
        ranks = frame.ranks.members
        if min(sizes) < 1 or math.prod(sizes) != len(ranks):
            raise Fault("the mesh does not fill the ranks")
        places = list(itertools.product(*map(range, sizes)))  # the last axis runs fastest
        mine = places[names["rank"]]
        for axis, keyword in enumerate(node.axes):
            same = [
                ranks[i]
                for i, place in enumerate(places)
                if all(
                    p == m for d, (p, m) in enumerate(zip(place, mine, strict=True)) if d != axis
                )
            ]
            label = f"{frame.definition.node.name}.{keyword.name}"
            names[keyword.name] = Group(label, tuple(same), ranks)

    # ------------------------------------------------------------------- calls

    def call(
        self, call: ast.Call, names: Names, frame: Frame, nest: Construct | None, handle: Any
    ) -> None:
        assert isinstance(call.func, ast.Name)
        name = call.func.id
        found = frame.definition.module.symbols.get(name)
        if found is None:
            keywords = {k.name: k.value for k in call.keywords}
            event = self.event(OPERATIONS[name].kind.name, name, call, frame, nest)
            calls.fill(event, OPERATIONS[name], call.args, keywords, names, self.me)
            self.emit(event, frame, handle)
            return
        params = found.node.params
        given = {p.target.id: evaluate(a, names) for p, a in zip(params, call.args, strict=False)}
        for keyword in call.keywords:
            if keyword.name != "group":
                given[keyword.name] = evaluate(keyword.value, names)
        inside = Frame(found, calls.group_of(call, names, self.me), (*frame.calls, call))
        if isinstance(found.node, ast.Extern):
            inside.ranks = names["ranks"]
        inner = self.enter(inside)
        self.bind_parameters(found.node, given, inner, {})
        if isinstance(found.node, ast.Extern):
            event = self.event("EXTERN", name, call, frame, nest)
            calls.fill_extern(event, found.node, inner)
            self.emit(event, frame, None)
        else:
            self.block(found.node.body, inner, inside, branch_of(nest))

    def event(
        self, kind: str, name: str, node: ast.Node, frame: Frame, nest: Construct | None
    ) -> Event:
        return Event(kind, name, node.span, frame.calls, nest)

    def emit(self, event: Event, frame: Frame, handle: Any) -> None:
        self.events.append(event)
        if handle is not None:
            event.asynchronous = True
            frame.outstanding.append((*handle, event))

    # --------------------------------------------------------------- transfers

    def transfer(
        self, node: ast.Transfer, names: Names, frame: Frame, nest: Construct | None, handle: Any
    ) -> None:
        keywords = {k.name: evaluate(k.value, names) for k in node.keywords}
        op = keywords.get("op")
        if node.source.rank is None or node.target.rank is None:
            source = evaluate(node.source.value, names)
            target = evaluate(node.target.value, names)
            self.emit(self.local(node, frame, nest, op, source, target), frame, None)
            return
        ends = [evaluate(place.rank, names) for place in (node.source, node.target)]
        ranks: Group = names["ranks"]
        if ends[0] == ends[1] or not all(0 <= end < len(ranks) for end in ends):
            raise Fault("no such message")
        for side, kind, place in ((0, "SEND", node.source), (1, "RECV", node.target)):
            if names["rank"] != ends[side]:
                continue
            event = self.event(kind, kind.lower(), node, frame, nest)
            event.peer, event.tag = ranks.members[ends[1 - side]], keywords.get("tag", 0)
            event.group = (ranks.label, ranks.members)
            target = view = evaluate(place.value, names)
            if op is not None and kind == "RECV":
                view = Tensor.new("inbox", target.buffer.dtype, target.shape)
            if not view.contiguous():
                raise Fault("strided")
            event.dtype = view.buffer.dtype
            event.operands = [(view, "read" if kind == "SEND" else "write")]
            self.emit(event, frame, handle)
            if op is not None and kind == "RECV":
                self.accumulate(node, frame, nest, op, view, target)

    def accumulate(
        self, node: Any, frame: Frame, nest: Construct | None, op: Any, view: Tensor, into: Tensor
    ) -> None:
        """At once, or after the end of the `parallel:` that the message is a child of."""
        if nest is None or nest.sequence:
            self.emit(self.local(node, frame, nest, op, view, into), frame, None)
        else:
            nest.deferred.append(self.local(node, frame, nest.parent, op, view, into))

    def local(
        self, node: Any, frame: Frame, nest: Construct | None, op: Any, source: Any, target: Any
    ) -> Event:
        if source.shape != target.shape:
            raise Fault("the shapes differ")
        name = "copy" if op is None else "accumulate"
        event = self.event(name.upper(), name, node, frame, nest)
        event.op, event.dtype = op, target.buffer.dtype
        event.operands = [(source, "read"), (target, "write" if op is None else "update")]
        return event

    # ----------------------------------------------------------------- handles

    def handle(self, node: Any, names: Names) -> tuple[str, tuple[int, ...]]:
        if isinstance(node, ast.Index):
            assert isinstance(node.base, ast.Name)
            return node.base.id, tuple(evaluate(sub, names) for sub in node.subs)
        return node.id, ()

    def wait(
        self, node: Any, handle: Any, names: Names, frame: Frame, nest: Construct | None
    ) -> None:
        name, indices = self.handle(handle, names)
        everything = not isinstance(handle, ast.Index)
        event = self.event("WAIT", "wait", node, frame, nest)
        for entry in list(frame.outstanding):
            if entry[0] == name and (everything or entry[1] == indices):
                frame.outstanding.remove(entry)
                entry[2].joined_by = event
        self.events.append(event)


def _bind_sizes(param: ast.Param, names: Names, done: set[str]) -> None:
    """Bind what the shape, and the dtype, of a bound parameter names."""
    value, kind = names[param.target.id], param.type
    if kind is None or kind.shape is None:
        return
    for dim, size in zip(kind.shape, calls.shape_of(value), strict=True):
        if isinstance(dim, ast.Name) and dim.id not in names:
            names[dim.id] = size
            done.add(dim.id)
    if isinstance(value, Tensor) and kind.name not in DTYPES and kind.name not in names:
        names[kind.name] = calls.DTypeName(value.buffer.dtype)
        done.add(kind.name)


def branch_of(nest: Construct | None) -> Construct | None:
    """A sequence or a call is one branch where it stands in a `parallel:`."""
    return nest if nest is None or nest.sequence else Construct(sequence=True, parent=nest)


__all__ = ["Buffer", "interpret"]
