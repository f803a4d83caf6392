"""Expressions: each is evaluated once for all lanes of a scope."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from commlang.diagnostics import did_you_mean
from commlang.dtypes import DTYPES
from commlang.expand import arrays, functions, operators, views
from commlang.expand.arrays import ArithmeticFault, Bool, Int, is_bool, is_int
from commlang.expand.fault import fail
from commlang.expand.scope import Scope
from commlang.expand.values import (
    SEQUENCES,
    CannotMix,
    Function,
    Group,
    Items,
    Op,
    Ragged,
    Value,
    View,
    choose,
    describe,
    is_tuple,
    is_uniform,
    take,
)
from commlang.operations import FUNCTIONS, ReduceOp
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.expand.arrays import Array

LANES = 1 << 18
"""How many lanes are evaluated at once: enough to hide the cost of a step, few enough to cache."""

MAX_CALLS = 100_000
"""Most calls of patterns and `let` functions; each is evaluated for all ranks at once."""


class Expressions:
    """The expression half of the evaluator."""

    def __init__(self, max_events: int) -> None:
        self.max_events = max_events
        self.lanes_run = 0
        self.calls = 0
        self.keep_values = False
        """Whether scopes keep their values, to tell the loop variables of an event later."""

    # ------------------------------------------------------------------ kinds

    def integer(self, node: ast.Expr, scope: Scope, what: str) -> Int:
        """Evaluate to an int."""
        value = self.eval(node, scope)
        if isinstance(value, Fraction) and value.denominator == 1:
            return value.numerator
        if not is_int(value):
            hint = "write `//` to round down" if isinstance(value, Fraction) else None
            fail(scope, node, "CL103", f"{what} is an int, not {describe(value)}", hint=hint)
        return value

    def boolean(self, node: ast.Expr, scope: Scope, what: str) -> Bool:
        """Evaluate to a bool."""
        value = self.eval(node, scope)
        if not is_bool(value):
            hint = "compare it, as in `x != 0`" if is_int(value) else None
            fail(scope, node, "CL103", f"{what} is a bool, not {describe(value)}", hint=hint)
        return value

    def sequence(self, node: ast.Expr, scope: Scope, what: str) -> Any:
        """Evaluate to a sequence."""
        value = self.eval(node, scope)
        if isinstance(value, SEQUENCES):
            return value
        hint = None
        if is_int(value):
            hint = f"did you mean `range({scope.frame.module.source.excerpt(node.span)})`?"
        elif isinstance(value, View):
            hint = "cut the tensor with `.chunks(k)`, or index it"
        fail(scope, node, "CL103", f"{what} is a list, not {describe(value)}", hint=hint)

    def uniform(self, node: ast.Expr, scope: Scope, value: Value, what: str) -> Any:
        """The one value of all lanes."""
        if not arrays.is_array(value):
            return value
        single = arrays.squeeze(value)
        if isinstance(single, np.ndarray):
            message = f"{what} must be the same on every rank and in every iteration"
            fail(scope, node, "CL103", message)
        return value.dtype.type(single).item()

    # ------------------------------------------------------------- evaluation

    def eval(self, node: ast.Expr, scope: Scope) -> Value:
        """The value of an expression on the lanes of a scope."""
        try:
            return self._eval(node, scope)
        except (ArithmeticFault, views.ViewFault, CannotMix) as fault:
            self.refuse(fault, node, scope)

    def refuse(
        self, fault: ArithmeticFault | views.ViewFault | CannotMix, node: ast.Node, scope: Scope
    ) -> NoReturn:
        """Tell a fault of arithmetic, of a view or of a value's kind at the node it arose in."""
        if isinstance(fault, CannotMix):
            message = "the value would differ in kind, dtype or number of dims between ranks"
            fail(scope, node, "CL103", message)
        code = "CL110" if isinstance(fault, ArithmeticFault) else "CL111"
        fail(scope, node, code, str(fault), lanes=fault.lanes, hint=fault.hint)

    def _eval(self, node: ast.Expr, scope: Scope) -> Value:
        match node:
            case ast.Name():
                return self._name(node, scope)
            case ast.Number(_, value):
                return value
            case ast.String(_, value):
                return value
            case ast.Paren(_, inner):
                return self._eval(inner, scope)
            case ast.Binary(_, op, left, right):
                return self._binary(node, op, left, right, scope)
            case ast.Compare():
                return self._compare(node, scope)
            case ast.Index():
                return self._index(node, scope)
            case ast.Attr(_, base, name):
                return self._attribute(node, self.eval(base, scope), name, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Unary():
                return self._unary(node, scope)
            case ast.BoolOp(_, op, operands):
                return self._logical(op, operands, scope)
            case ast.Conditional():
                return self._conditional(node, scope)
            case ast.ListExpr(_, items):
                return self._list(node, items, scope)
            case ast.Comprehension():
                return self._comprehension(node, scope)
            case ast.At():
                hint = "`@` stands in transfers (`x @ 0 -> y @ 1`) and in contracts"
                fail(scope, node, "CL104", "`@` cannot stand in this expression", hint=hint)

    def _list(self, node: ast.Expr, items: tuple[ast.Expr, ...], scope: Scope) -> Items:
        listed = Items(tuple(self.eval(item, scope) for item in items))
        if listed.weight > functions.MAX_WALK:
            fail(scope, node, "CL120", f"a list of more than {functions.MAX_WALK:,} items")
        return listed

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        try:
            return scope.lookup(node.id)
        except KeyError:
            pass
        if node.id in ReduceOp.__members__.values():
            return Op(ReduceOp(node.id))
        if node.id in ("true", "false"):
            return node.id == "true"
        if node.id in DTYPES:
            return DTYPES[node.id]
        fail(
            scope,
            node,
            "CL101",
            f"`{node.id}` is not defined",
            hint=did_you_mean(node.id, [*scope.visible(), *FUNCTIONS]),
        )

    def _binary(
        self, node: ast.Expr, op: str, left: ast.Expr, right: ast.Expr, scope: Scope
    ) -> Value:
        a, b = self.eval(left, scope), self.eval(right, scope)
        result = operators.combine(op, a, b)
        if result is not None:
            return result
        message = f"`{op}` needs two ints, not {describe(a)} and {describe(b)}"
        hint = "data is combined with an arrow: `a -> b, op=sum`" if isinstance(a, View) else None
        fail(scope, node, "CL103", message, hint=hint)

    def _unary(self, node: ast.Unary, scope: Scope) -> Value:
        if node.op == "not":
            return arrays.logical_not(self.boolean(node.operand, scope, "the operand of `not`"))
        value = self.eval(node.operand, scope)
        if arrays.is_number(value) and node.op in "+-":
            return -value if node.op == "-" else value
        if not is_int(value):
            fail(scope, node, "CL103", f"`{node.op}` needs an int, not {describe(value)}")
        return ~value

    def _compare(self, node: ast.Compare, scope: Scope) -> Bool:
        result: Bool = True
        left = self.eval(node.operands[0], scope)
        for op, operand in zip(node.ops, node.operands[1:], strict=True):
            right = self.eval(operand, scope)
            result = arrays.logical_and(result, self._compare_two(node, op, left, right, scope))
            left = right
        return result

    def _compare_two(self, node: ast.Expr, op: str, a: Value, b: Value, scope: Scope) -> Bool:
        if op in ("in", "not in"):
            inside = self._contains(node, a, b, scope)
            return inside if op == "in" else arrays.logical_not(inside)
        result = operators.compare(op, a, b)
        if result is None:
            message = f"`{op}` cannot compare {describe(a)} with {describe(b)}"
            fail(scope, node, "CL103", message)
        return result

    def _contains(self, node: ast.Expr, member: Value, sequence: Value, scope: Scope) -> Bool:
        if not isinstance(sequence, SEQUENCES) or not is_int(member):
            kinds = f"{describe(member)} and {describe(sequence)}"
            fail(scope, node, "CL103", f"`in` needs an int and a list, not {kinds}")
        return operators.contains(member, sequence)

    # --------------------------------------------------------------- branches

    def _logical(self, op: str, operands: tuple[ast.Expr, ...], scope: Scope) -> Bool:
        """`and` and `or`: an operand is evaluated only on the lanes that it decides."""
        stop = op == "or"
        result = self.boolean(operands[0], scope, f"an operand of `{op}`")
        for operand in operands[1:]:
            if isinstance(result, bool):
                if result is stop:
                    return result
                result = self.boolean(operand, scope, f"an operand of `{op}`")
                continue
            open_lanes = np.flatnonzero(result != stop)
            if not len(open_lanes):
                return result
            inner = scope.narrow(open_lanes)
            result = result.copy()
            result[open_lanes] = self.boolean(operand, inner, f"an operand of `{op}`")
        return result

    def _conditional(self, node: ast.Conditional, scope: Scope) -> Value:
        test = self.boolean(node.test, scope, "the condition")
        if isinstance(test, bool):
            return self.eval(node.then if test else node.other, scope)
        if test.all() or not test.any():
            return self.eval(node.then if test.all() else node.other, scope)
        yes, no = np.flatnonzero(test), np.flatnonzero(~test)
        then = self.eval(node.then, scope.narrow(yes))
        other = self.eval(node.other, scope.narrow(no))
        where = np.empty(scope.lanes, dtype=np.int64)
        where[yes], where[no] = np.arange(len(yes)), np.arange(len(no))
        spread = (
            take(then, np.minimum(where, len(yes) - 1)),  # on the other lanes, whatever it is
            take(other, np.minimum(where, len(no) - 1)),
        )
        return choose(self.alike(spread, scope), (~test).astype(np.int64))

    def alike(self, values: tuple[Value, Value], scope: Scope) -> tuple[Value, Value]:
        """Two values of which each lane has one; contracts see to it that they mix."""
        return values

    # -------------------------------------------------------------- sequences

    def loop(
        self, node: ast.Node, sequence: Any, scope: Scope, *, singly: bool = False
    ) -> Iterator[tuple[int, int, Array]]:
        """Lanes of a loop, some iterations at a time (one if `singly`): per chunk its first
        iteration, how many there are and, stacked, each new lane's iteration and outer lane.
        """
        length = sequence.length
        most = arrays.top(length)
        self._charge(node, arrays.total(length, scope.lanes), scope)
        per_chunk = 1 if singly else max(1, LANES // max(1, scope.lanes))
        everyone = np.arange(scope.lanes)
        for first in range(0, most, per_chunk):
            count = min(per_chunk, most - first)
            iterations = np.repeat(np.arange(first, first + count), scope.lanes)
            lanes = np.tile(everyone, count)
            if isinstance(length, np.ndarray):
                live = iterations < length[lanes]
                iterations, lanes = iterations[live], lanes[live]
            yield first, count, np.stack([iterations, lanes])

    def count_call(self, node: ast.Node, scope: Scope) -> None:
        """Bound how often functions and patterns are called, whatever little each call does."""
        self.calls += 1
        if self.calls > MAX_CALLS:
            message = f"more than {MAX_CALLS:,} calls of patterns and functions"
            hint = "a recursion that calls itself twice doubles its work at every level"
            fail(scope, node, "CL120", message, hint=hint)

    def _charge(self, node: ast.Node, lanes: int, scope: Scope) -> None:
        self.lanes_run += lanes
        if lanes > self.max_events or self.lanes_run > 8 * self.max_events:
            message = f"this loop would expand to more than {self.max_events:,} events"
            hint = "lower the parameters, or raise the limit with --max-events"
            fail(scope, node, "CL120", message, hint=hint)

    def bind_targets(
        self, node: ast.Node, targets: tuple[ast.Target, ...], value: Value, scope: Scope
    ) -> None:
        """Bind loop variables to an item."""
        if len(targets) == 1:
            scope.bind(targets[0].id, Items(value) if is_tuple(value) else value)
            return
        parts: Any = value
        if isinstance(value, SEQUENCES):
            whole = isinstance(value.length, int) and value.length == len(targets)
            parts = tuple(value.at(i) for i in range(len(targets))) if whole else ()
        if not is_tuple(parts) or len(parts) != len(targets):
            message = f"{len(targets)} names need a list of {len(targets)}, not {describe(value)}"
            fail(scope, node, "CL103", message)
        for target, part in zip(targets, parts, strict=True):
            scope.bind(target.id, part)

    def _comprehension(self, node: ast.Comprehension, scope: Scope) -> Ragged:
        """Evaluate on lanes of (lane, item) at once, of which each lane has a run.

        What does not depend on the lane is evaluated on one: else a list over all ranks would
        cost the square of their number.
        """
        alone = scope.lanes > 1 and self._independent(node, scope)
        inner = scope = scope.narrow(np.zeros(1, dtype=np.int64)) if alone else scope
        for clause in node.clauses:
            inner = self._clause(clause, inner)
        flat = self.eval(node.element, inner)
        owner = inner.map_to(scope)
        if owner is None:
            owner = np.arange(scope.lanes)
        order = np.arange(len(owner))
        length = np.bincount(owner, minlength=scope.lanes)
        if scope.lanes == 1:
            return Ragged(flat, order, 0, int(length[0]))
        first = np.cumsum(length) - length
        return Ragged(flat, order, first, arrays.squeeze(length))

    def _independent(self, node: ast.Expr, scope: Scope) -> bool:
        """Whether an expression has one value for all lanes, by the names that it uses."""
        for part in walk(node):
            if isinstance(part, ast.Attr) and part.name in ("index", "next", "prev"):
                return False
            if not isinstance(part, ast.Name):
                continue
            try:
                value = scope.lookup(part.id)  # of a shadowed name the outer one, to be safe
            except KeyError:
                continue  # bound inside, a function, an op, or unknown: evaluation tells
            if isinstance(value, Function):
                params = {p.id for p in value.node.params}
                free = {n.id for n in walk(value.node.value) if isinstance(n, ast.Name)}
                if free - params - set(FUNCTIONS):
                    return False
            elif not is_uniform(value):
                return False
        return True

    def _clause(self, clause: ast.Clause, scope: Scope) -> Scope:
        sequence = self.sequence(clause.iterable, scope, "what `for` runs over")
        parts = [lanes for _, _, lanes in self.loop(clause, sequence, scope)]
        lanes = np.concatenate([np.empty((2, 0), dtype=np.int64), *parts], axis=1)
        lanes = lanes[:, np.argsort(lanes[1], kind="stable")]  # the last clause runs fastest
        inner = Scope(scope.frame, lanes.shape[1], scope, lanes[1], lexical=scope)
        inner.targets = tuple(t.id for t in clause.targets)
        self.bind_targets(clause, clause.targets, _items(sequence, lanes), inner)
        if clause.condition is None:
            return inner
        keep = self.boolean(clause.condition, inner, "the condition")
        if isinstance(keep, bool):
            return inner if keep else inner.narrow(np.empty(0, dtype=np.int64))
        return inner.narrow(np.flatnonzero(keep))

    # ------------------------------------------------- attributes and indices

    def _attribute(self, node: ast.Attr, base: Value, name: str, scope: Scope) -> Value:
        if isinstance(base, Group) and name in ("size", "index", "next", "prev"):
            return self._group_attribute(node, base, name, scope)
        if isinstance(base, View) and name in ("shape", "numel", "ndim"):
            values = {"shape": Items(base.shape), "numel": base.numel, "ndim": len(base.shape)}
            return values[name]
        fail(scope, node, "CL101", f"{describe(base)} has no attribute `{name}`")

    def _group_attribute(self, node: ast.Attr, group: Group, name: str, scope: Scope) -> Int:
        size = group.table.size(group.gid)
        if name == "size":
            return size
        index = group.table.position(group.gid, scope.ranks)
        outside = index < 0
        if arrays.anywhere(outside):
            text = scope.frame.module.source.excerpt(node.base.span)
            message = f"`.{name}` on a rank that is not in `{text}`"
            fail(
                scope, node, "CL118", message, lanes=outside, hint=f"guard it: `if rank in {text}:`"
            )
        if name == "index":
            return index
        step = 1 if name == "next" else -1
        return group.at(arrays.modulo(index + step, size))

    def _index(self, node: ast.Index, scope: Scope) -> Value:
        base = self.eval(node.base, scope)
        subs = [self._sub(sub, scope) for sub in node.subs]
        if isinstance(base, View):
            places = enumerate(zip(subs, node.subs, strict=True))
            resolved = [views.wrap(sub, text, base.shape, dim) for dim, (sub, text) in places]
            return views.index_view(base, resolved)
        if isinstance(base, SEQUENCES):
            value: Value = base
            for sub, text in zip(subs, node.subs, strict=True):
                if not isinstance(value, SEQUENCES):
                    fail(scope, node, "CL103", f"{describe(value)} cannot be indexed")
                value = views.index_sequence(value, views.wrap(sub, text, (value.length,), 0))
            return value
        fail(scope, node, "CL103", f"{describe(base)} cannot be indexed")

    def _sub(self, sub: ast.Expr | ast.Slice, scope: Scope) -> Any:
        if not isinstance(sub, ast.Slice):
            return self.integer(sub, scope, "an index")
        parts = (sub.low, sub.high, sub.step)
        return tuple(None if p is None else self.integer(p, scope, "an index") for p in parts)

    # ------------------------------------------------------------------ calls

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        func = node.func
        if isinstance(func, ast.Attr):
            return self._method(node, func, scope)
        name = func.id if isinstance(func, ast.Name) else ""
        try:
            value = scope.lookup(name)
        except KeyError:
            value = None
        if isinstance(value, Function):
            return self._apply(node, value, scope)
        if value is None and name in FUNCTIONS:
            return functions.call(self, node, name, scope)
        if value is None and not isinstance(func, ast.Name):
            value = self.eval(func, scope)
        known = [*scope.visible(), *FUNCTIONS]
        if value is None:
            message = f"`{name}` is not a function"
            fail(scope, func, "CL101", message, hint=did_you_mean(name, known))
        fail(scope, func, "CL103", f"{describe(value)} cannot be called in an expression")

    def _apply(self, node: ast.Call, function: Function, scope: Scope) -> Value:
        params = function.node.params
        if len(node.args) != len(params) or node.keywords:
            message = f"`{function.node.target.id}` takes {len(params)} arguments"
            fail(scope, node, "CL102", message)
        self.count_call(node, scope)
        body = Scope(
            function.scope.frame,
            scope.lanes,
            scope,
            None,
            lexical=function.scope,
            instances=scope.instances,
        )
        for param, arg in zip(params, node.args, strict=True):
            body.bind(param.id, self.eval(arg, scope))
        return self.eval(function.node.value, body)

    def _method(self, node: ast.Call, func: ast.Attr, scope: Scope) -> Value:
        base = self.eval(func.base, scope)
        if not isinstance(base, View):
            fail(scope, node, "CL101", f"{describe(base)} has no method `{func.name}`")
        args = [self.integer(a, scope, "an argument") for a in node.args]
        named = {k.name: self.integer(k.value, scope, k.name) for k in node.keywords}
        match func.name:
            case "chunks" if len(args) + len(named) in (1, 2):
                k = args[0] if args else named["k"]
                dim = named["dim"] if "dim" in named else args[1] if len(args) > 1 else 0
                return views.chunks(base, k, self.uniform(node, scope, dim, "dim"))
            case "reshape":
                return views.reshape(base, tuple(args))
            case "flatten":
                return views.reshape(base, (base.numel,))
            case "transpose" if len(args) == 2:
                a, b = (self.uniform(node, scope, v, "dim") for v in args)
                return views.transpose(base, a, b)
            case _:
                fail(scope, node, "CL102", f"a tensor has no method `{func.name}` like this")


def _items(sequence: Any, lanes: Array) -> Value:
    """The items of a sequence on the lanes of a loop (iterations, outer lanes)."""
    return take(sequence, lanes[1]).at(lanes[0])
