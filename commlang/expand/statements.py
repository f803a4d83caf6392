"""Statements: blocks, loops, branches, bindings, and the calls that make events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from commlang.diagnostics import did_you_mean
from commlang.expand import arrays, binding, grouping, local, remote
from commlang.expand.arrays import ArithmeticFault
from commlang.expand.expressions import Expressions
from commlang.expand.fault import fail
from commlang.expand.record import Chunk, Handle, Nest, Site
from commlang.expand.scope import Frame, Scope
from commlang.expand.values import (
    Callable,
    CannotMix,
    Chosen,
    Function,
    Group,
    Items,
    Sliced,
    Value,
    View,
    Zipped,
    choose,
    describe,
    take,
)
from commlang.expand.views import ViewFault
from commlang.operations import OPERATIONS, Kind
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.expand.arrays import Array, Int
    from commlang.expand.record import Recording
    from commlang.resolve.modules import Definition

MAX_DEPTH = 100
"""Deepest nesting of pattern calls; more is a recursion that does not end."""


class Evaluator(Expressions):
    """Runs the statements of a pattern on all lanes and writes down their events."""

    def __init__(self, recording: Recording, max_events: int) -> None:
        super().__init__(max_events)
        self.recording = recording

    # ----------------------------------------------------------------- blocks

    def block(self, body: tuple[ast.Stmt, ...], scope: Scope, nest: Nest | None) -> None:
        """Run statements in order; on no lanes at all, nothing happens."""
        if not scope.lanes:
            return
        for statement in body:
            try:
                self._statement(statement, scope, nest)
            except (ArithmeticFault, ViewFault, CannotMix) as fault:
                self.refuse(fault, statement, scope)

    def _inside(self, body: tuple[ast.Stmt, ...], inner: Scope, nest: Nest | None) -> None:
        """Run a block in a scope of its own, which takes its slots from the one around it."""
        assert inner.outer is not None
        self.block(body, inner, nest)
        inner.outer.slots += inner.slots
        if not self.keep_values:
            inner.close()

    def _statement(self, node: ast.Stmt, scope: Scope, nest: Nest | None) -> None:
        match node:
            case ast.Let(_, target, value):
                scope.bind(target.id, self.eval(value, scope))
            case ast.LetFunction(_, target):
                scope.bind(target.id, Function(node, scope))
            case ast.Temp():
                self._temp(node, scope, nest)
            case ast.Group(_, target, value):
                scope.bind(target.id, self._group(node, value, scope))
            case ast.Mesh():
                self._mesh(node, scope)
            case ast.Require():
                self._require(node, scope)
            case ast.For(_, targets, iterable, body):
                self._loop(node, targets, iterable, body, scope, nest)
            case ast.If():
                self._if(node, scope, nest)
            case ast.Parallel():
                self._parallel(node, scope, nest)
            case ast.Sequence(_, body):
                self._sequence(body, scope, nest)
            case ast.CallStatement(_, call):
                self._call_statement(call, scope, nest, None)
            case ast.Transfer():
                remote.transfer(self, node, scope, nest, None)
            case ast.Async(_, handle, operation):
                self._async(handle, operation, scope, nest)
            case ast.Wait():
                self._wait(node, scope, nest)
            case ast.Pass() | ast.Preset() | ast.Ensure() | ast.Assume() | ast.Cost():
                pass

    # --------------------------------------------------------------- bindings

    def _temp(self, node: ast.Temp, scope: Scope, nest: Nest | None) -> None:
        if node.like is not None:
            like = self.eval(node.like, scope)
            if not isinstance(like, View):
                fail(scope, node.like, "CL103", f"`like` needs a tensor, not {describe(like)}")
            dtype, shape = like.dtype, like.shape
        else:
            assert node.type is not None
            dtype = binding.dtype_of(node.type, scope)
            shape = self.shape(node.type.shape or (), scope)
        view = self.allocate(node.target.id, dtype, shape, node, scope, nest)
        scope.bind(node.target.id, view)

    def shape(self, dims: tuple[ast.Expr, ...], scope: Scope) -> tuple[Int, ...]:
        """The sizes of a declared shape; negative ones are refused."""
        shape: list[Int] = []
        for dim in dims:
            size = self.integer(dim, scope, "a dim")
            negative = size < 0
            if arrays.anywhere(negative):
                fail(scope, dim, "CL112", "a dim is negative", lanes=negative)
            shape.append(size)
        return tuple(shape)

    def allocate(
        self,
        name: str,
        dtype: Any,
        shape: tuple[Int, ...],
        node: ast.Node,
        scope: Scope,
        nest: Nest | None,
    ) -> View:
        """A new buffer that lives in the block of a scope."""
        return self.recording.allocate(
            name,
            dtype,
            shape,
            node,
            scope,
            block=scope,
            distinct=nest is not None,
            frame=scope.frame,
        )

    def frame_ranks(self, scope: Scope) -> Group:
        """The group of the pattern, on the lanes of a scope."""
        return scope.lookup("ranks")

    def _group(self, node: ast.Group, value: ast.Expr, scope: Scope) -> Group:
        members = self.sequence(value, scope, "a group")
        label = f"{scope.frame.definition.node.name}.{node.target.id}"
        return grouping.make_group(node, self.frame_ranks(scope), members, scope, label)

    def _mesh(self, node: ast.Mesh, scope: Scope) -> None:
        ranks = self.frame_ranks(scope)
        sizes = [self.integer(a.value, scope, "the size of an axis") for a in node.axes]
        stride: Int = 1
        for axis, size in zip(node.axes, sizes, strict=True):
            differs = self.differs(size, scope)
            if arrays.anywhere(differs):
                message = "the size of an axis must be the same on every rank"
                fail(scope, axis, "CL103", message, lanes=differs)
            stride = arrays.multiply(stride, arrays.maximum(size, 0))
        wrong = ranks.length != stride
        if arrays.anywhere(wrong):
            lane = arrays.first_lane(wrong)
            shape = " x ".join(str(arrays.lane(size, lane)) for size in sizes)
            places, world = arrays.lane(stride, lane), arrays.lane(ranks.length, lane)
            message = f"the mesh {shape} has {places} places, the pattern {world} ranks"
            hint = "the sizes multiply to the number of ranks"
            fail(scope, node, "CL123", message, lanes=wrong, hint=hint)
        for axis, size in zip(node.axes, sizes, strict=True):
            stride = arrays.floor_divide(stride, size)
            label = f"{scope.frame.definition.node.name}.{axis.name}"
            scope.bind(axis.name, grouping.mesh_axis(node, ranks, size, stride, scope, label))

    def _require(self, node: ast.Require, scope: Scope) -> None:
        holds = self.boolean(node.condition, scope, "a requirement")
        if arrays.everywhere(holds):
            return
        text = scope.frame.module.source.excerpt(node.condition.span)
        message = f"required: {node.message or text}"
        fail(scope, node, "CL124", message, lanes=arrays.logical_not(holds))

    # ---------------------------------------------------------------- control

    def _loop(
        self,
        node: ast.Node,
        targets: tuple[ast.Target, ...],
        iterable: ast.Expr,
        body: tuple[ast.Stmt, ...],
        scope: Scope,
        nest: Nest | None,
    ) -> None:
        """Run the body for many iterations at once: nothing is carried from one to the next."""
        sequence = self.sequence(iterable, scope, "what `for` runs over")
        most = arrays.top(sequence.length)
        names = tuple(t.id for t in targets)
        scopes: list[Scope] = []
        singly = not _of_one_kind(sequence)
        for first, count, lanes in self.loop(node, sequence, scope, singly=singly):
            inner = self._iterations(first, count, lanes, names, sequence, scope)
            item = take(sequence, lanes[1]) if inner.up is not None else sequence
            self.bind_targets(node, targets, item.at(inner.iteration), inner)
            self.block(body, inner, nest)
            if not self.keep_values:
                inner.close()
            scopes.append(inner)
        stride = max((s.slots for s in scopes), default=0)
        for inner in scopes:
            inner.stride = stride
        scope.slots += most * stride

    def _iterations(
        self,
        first: int,
        count: int,
        lanes: Array,
        names: tuple[str, ...],
        sequence: Any,
        scope: Scope,
    ) -> Scope:
        """The scope of some iterations; of a single one, its number is uniform."""
        single = count == 1 and isinstance(sequence.length, int)
        return Scope(
            scope.frame,
            lanes.shape[1],
            scope,
            None if single else lanes[1],
            lexical=scope,
            iteration=first if single else lanes[0],
            first=first,
            instances=scope.instances * count,
            targets=names,
        )

    def _if(self, node: ast.If, scope: Scope, nest: Nest | None) -> None:
        rest = np.arange(scope.lanes)
        for branch in node.branches:
            if not len(rest):
                return
            inner = scope.inner() if len(rest) == scope.lanes else scope.narrow(rest)
            chosen = rest
            if branch.condition is not None:
                test = self.boolean(branch.condition, inner, "the condition")
                if isinstance(test, bool):
                    chosen, rest = (rest, rest[:0]) if test else (rest[:0], rest)
                else:
                    chosen, rest = rest[test], rest[~test]
            else:
                rest = rest[:0]
            if len(chosen):
                whole = len(chosen) == scope.lanes
                self._inside(branch.body, scope.inner() if whole else scope.narrow(chosen), nest)

    def _parallel(self, node: ast.Parallel, scope: Scope, nest: Nest | None) -> None:
        flattened = nest is not None and not nest.sequence
        start = scope.take_slot()
        here = nest if flattened else Nest(scope, start, nest, sequence=False)
        if node.iterable is None:
            self._inside(node.body, scope.inner(), here)
        else:
            self._loop(node, node.targets, node.iterable, node.body, scope, here)
        if not flattened and here is not None:
            here.slots = scope.slots - start
            scope.slots += here.slots  # room for the accumulations that follow the join

    def _sequence(self, body: tuple[ast.Stmt, ...], scope: Scope, nest: Nest | None) -> None:
        inner = scope.inner()
        if nest is not None and not nest.sequence:
            nest = Nest(scope, scope.take_slot(), nest, sequence=True)
            inner = scope.inner()
        self._inside(body, inner, nest)

    # ------------------------------------------------------------------ calls

    def _call_statement(
        self, call: ast.Call, scope: Scope, nest: Nest | None, handle: Handle | None
    ) -> None:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        try:
            value = scope.lookup(name)
        except KeyError:
            value = None
        if value is None and name in scope.frame.module.symbols:
            value = Callable(scope.frame.module.symbols[name])
        if isinstance(value, Callable):
            definition = value.definition
            if handle is not None:
                message = "only an operation can be async, not a pattern or an extern"
                fail(scope, call, "CL104", message)
            if isinstance(definition.node, ast.Extern):
                local.extern(self, call, definition, scope, nest)
            else:
                self._pattern(call, definition, scope, nest)
            return
        operation = OPERATIONS.get(name) if value is None else None
        if operation is None:
            self._unknown_call(call, name, value, scope)
        if operation.kind.is_local:
            local.operation(self, call, operation, scope, nest)
        else:
            remote.operation(self, call, operation, scope, nest, handle)

    def _unknown_call(self, call: ast.Call, name: str, value: Value, scope: Scope) -> NoReturn:
        if value is not None:
            fail(scope, call, "CL103", f"{describe(value)} cannot be called as a statement")
        known = [*OPERATIONS, *scope.frame.module.symbols]
        message = f"`{name}` is no operation, pattern or extern"
        fail(scope, call.func, "CL101", message, hint=did_you_mean(name, known))

    def _pattern(
        self, call: ast.Call, definition: Definition, scope: Scope, nest: Nest | None
    ) -> None:
        node = definition.node
        if len(scope.frame.path) >= MAX_DEPTH:
            message = f"pattern calls are nested more than {MAX_DEPTH} deep"
            hint = "a recursion must reach a world in which it makes no further call"
            fail(scope, call, "CL125", message, hint=hint)
        self.count_call(call, scope)
        given = binding.collect(node.name, node.params, call, self, scope)
        takes_group = any(p.target.id == "group" for p in node.params)
        ranks = self.frame_ranks(scope) if takes_group else self.group_argument(call, scope)
        if nest is not None and not nest.sequence:  # a call is one branch of a parallel block
            nest = Nest(scope, scope.take_slot(), nest, sequence=True)
        frame = Frame(definition, ranks, (*scope.frame.path, call))
        inner = Scope(frame, scope.lanes, scope, None, instances=scope.instances)
        self.enter(inner, ranks)
        self._same_parameters(call, given, inner, scope)
        binding.bind(node.params, given, self, inner, scope)
        self._unbound_tensors(call, node, inner, scope)
        self._inside(node.body, inner, nest)

    def enter(self, inner: Scope, ranks: Group) -> None:
        """Bind what every pattern knows: its ranks, its size and the rank that runs it."""
        own = Group(ranks.gid, ranks.table, ranks.gid)
        inner.bind("ranks", own)
        inner.bind("world", own.length)
        inner.bind("rank", ranks.table.position(ranks.gid, inner.ranks))

    def group_argument(self, call: ast.Call, scope: Scope) -> Group:
        """The group that a call runs on: `group=`, or the pattern's own."""
        node = next((k for k in call.keywords if k.name == "group"), None)
        if node is None:
            return self.frame_ranks(scope)
        return self.member_group(node.value, scope)

    def member_group(self, node: ast.Expr, scope: Scope) -> Group:
        """Evaluate to a group of which every rank that runs the line is a member."""
        group = self.eval(node, scope)
        text = scope.frame.module.source.excerpt(node.span)
        if not isinstance(group, Group):
            hint = f"name it first: `group g = {text}`"
            fail(scope, node, "CL103", f"`group` is a group, not {describe(group)}", hint=hint)
        outside = group.table.position(group.gid, scope.ranks) < 0
        if arrays.anywhere(outside):
            message = f"a rank that is not in `{text}` runs this call"
            hint = f"guard the call: `if rank in {text}:`"
            fail(scope, node, "CL118", message, lanes=outside, hint=hint)
        return group

    def _same_parameters(
        self, call: ast.Call, given: dict[str, binding.Argument], inner: Scope, scope: Scope
    ) -> None:
        for name, argument in given.items():
            value = argument.value
            if arrays.is_array(value):
                differs = self.differs(value, inner)
                if arrays.anywhere(differs):
                    message = f"parameter `{name}` differs between the ranks of one call"
                    hint = "a parameter is the same on every rank; use `rank` inside the pattern"
                    fail(scope, argument.node, "CL126", message, lanes=differs, hint=hint)

    def differs(self, value: Int, scope: Scope) -> arrays.Bool:
        """Lanes whose value is not that of the first rank of their group, in their iteration."""
        if not isinstance(value, np.ndarray):
            return False
        together = scope.instance * (1 << 20) + self.frame_ranks(scope).gid
        if not isinstance(together, np.ndarray):
            return value != value[0]
        order = np.argsort(together, kind="stable")
        first = np.empty(len(order), dtype=np.bool_)
        first[0], first[1:] = True, np.diff(together[order]) != 0
        leader = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
        result = np.empty(len(order), dtype=np.bool_)
        result[order] = value[order] != value[leader]
        return result

    def _unbound_tensors(
        self, call: ast.Call, node: ast.Pattern | ast.Extern, inner: Scope, scope: Scope
    ) -> None:
        for param in node.params:
            if param.target.id not in inner.vars:
                message = f"`{node.name}` needs a tensor for `{param.target.id}`"
                fail(scope, call, "CL102", message)

    # ---------------------------------------------------------------- handles

    def _async(
        self,
        handle: ast.Name | ast.Index,
        operation: ast.CallStatement | ast.Transfer,
        scope: Scope,
        nest: Nest | None,
    ) -> None:
        bound = self._handle(handle, scope, joining=False)
        if isinstance(operation, ast.Transfer):
            remote.transfer(self, operation, scope, nest, bound)
        else:
            self._call_statement(operation.call, scope, nest, bound)

    def _handle(self, node: ast.Expr, scope: Scope, *, joining: bool) -> Handle:
        frame = scope
        while frame.outer is not None and frame.outer.frame is scope.frame:
            frame = frame.outer
        indices: tuple[Int, ...] | None = None if joining else ()
        base = node
        if isinstance(node, ast.Index):
            base = node.base
            indices = tuple(
                self.integer(sub, scope, "the index of a handle")
                for sub in node.subs
                if not isinstance(sub, ast.Slice)
            )
            if len(indices) != len(node.subs):
                fail(scope, node, "CL103", "a handle is indexed by ints, not slices")
        if not isinstance(base, ast.Name):
            fail(scope, node, "CL103", "a handle is a name, or a name with indices")
        return Handle(frame, base.id, indices)

    def _wait(self, node: ast.Wait, scope: Scope, nest: Nest | None) -> None:
        handle = self._handle(node.handle, scope, joining=True)
        self.emit(scope, nest, Kind.WAIT, "wait", node, handle=handle)

    # ----------------------------------------------------------------- events

    def emit(
        self,
        scope: Scope,
        nest: Nest | None,
        kind: Kind,
        name: str,
        node: ast.Node,
        *,
        handle: Handle | None = None,
        arguments: tuple[tuple[str, Any], ...] = (),
        extern: Definition | None = None,
        **columns: Any,
    ) -> None:
        """Write down the events of one statement on the lanes of a scope."""
        if not scope.lanes:
            return
        recording = self.recording
        if recording.events + scope.lanes > self.max_events:
            message = f"the pattern expands to more than {self.max_events:,} events"
            hint = "lower the parameters, or raise the limit with --max-events"
            fail(scope, node, "CL120", message, hint=hint)
        site = Site(
            kind,
            name,
            node.span,
            scope.frame.module.source,
            scope.frame.path,
            op=columns.pop("op", None),
            dtype=columns.pop("dtype", None),
            asynchronous=handle is not None and kind is not Kind.WAIT,
            arguments=arguments,
            extern=extern,
            handle=handle.name if handle else None,
        )
        position = scope.take_slot()
        number = recording.site(site)
        recording.add(Chunk(scope, number, position, nest, handle=handle, **columns))


def _of_one_kind(sequence: Any) -> bool:
    """Whether items can be evaluated side by side; ops and fractions, say, cannot."""
    match sequence:
        case Items(items):
            one = np.zeros(1, dtype=np.int64)
            try:
                choose(tuple(take(item, one) for item in items), one)
            except CannotMix:
                return False
            return True
        case Sliced(base):
            return _of_one_kind(base)
        case Zipped(parts) | Chosen(parts):
            return all(_of_one_kind(part) for part in parts)
        case _:
            return True
