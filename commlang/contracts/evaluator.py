"""Contracts as expressions: those of the pattern, and what only contracts may say.

The evaluator of patterns does the work, with one lane for each rank. What the contents of tensors
are, at entry and at the end, and whether two of them agree, is left to those who know: a proof
holds symbols for them, a check after a run the data themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.computed import OPERATORS, Combined, Packed
from commlang.contracts.externs import call_extern, extern_of
from commlang.contracts.fold import filled, fold
from commlang.contracts.lists import concat, reduce_numbers, reduce_tensors
from commlang.contracts.scope import (
    Elsewhere,
    Pinned,
    lists_tensors,
    loop_variables,
    root_of,
)
from commlang.expand import arrays, views
from commlang.expand.arrays import is_bool, is_int
from commlang.expand.fault import fail
from commlang.expand.run import MAX_EVENTS
from commlang.expand.scope import Frame, Scope
from commlang.expand.statements import Evaluator
from commlang.expand.values import Group, Op, Value, View, describe
from commlang.operations import REDUCE_OPS, ReduceOp
from commlang.syntax import ast
from commlang.syntax.walk import children, walk

if TYPE_CHECKING:
    from commlang.contracts.computed import Called, Computed
    from commlang.dtypes import DType
    from commlang.expand.arrays import Bool, Int
    from commlang.expand.record import Recording
    from commlang.expand.values import Function

_BINDINGS = (ast.Let, ast.LetFunction, ast.Group, ast.Mesh, ast.Temp)


class ContractEvaluator(Evaluator):
    """Evaluates the `ensure` statements of the pattern that a recording was made of."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording, MAX_EVENTS)
        self._roots: dict[bool, Scope] = {}

    # ------------------------------------------------- what the contents decide

    def given(self, name: str, view: View, scope: Scope, *, old: bool) -> View:
        """A tensor parameter on the lanes of all ranks, at entry or at the end."""
        raise NotImplementedError

    def computed(self, what: Computed, shape: tuple[Int, ...], dtype: DType, scope: Scope) -> View:
        """A tensor for each lane of the scope."""
        raise NotImplementedError

    def called(self, call: Called, scope: Scope) -> list[View]:
        """What an extern writes, in order: tensors for each lane of the scope."""
        raise NotImplementedError

    def compare_tensors(self, node: ast.Expr, op: str, a: Value, b: Value, scope: Scope) -> Bool:
        """Per lane, whether `a op b` holds for all elements; at least one of them is a tensor."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------

    def root(self, *, old: bool) -> Scope:
        """The bindings of the pattern, with a lane for each rank, at entry or at the end."""
        if old not in self._roots:
            self._roots[old] = self._bindings(old)
        return self._roots[old]

    def _bindings(self, old: bool) -> Scope:
        recording = self.recording
        everyone = Group(0, recording.groups, 0)
        scope = Scope(Frame(recording.definition, everyone, ()), recording.world, None, None)
        scope.ranks = np.arange(recording.world)
        self.enter(scope, everyone)
        for name, value in recording.parameters.items():
            scope.bind(name, value)
        for name, view in recording.tensors.items():
            scope.bind(name, self.given(name, view, scope, old=old))
        body = recording.definition.node.body
        self.block(tuple(s for s in body if isinstance(s, _BINDINGS)), scope, None)
        return scope

    def iterate(self, clauses: tuple[ast.Clause, ...], scope: Scope) -> Scope:
        """The lanes of all iterations of a contract's trailing `for` clauses."""
        for clause in clauses:
            scope = self._clause(clause, scope)
        return scope

    # ----------------------------------------------------------- ranks and times

    def _eval(self, node: ast.Expr, scope: Scope) -> Value:
        return self._at(node, scope) if isinstance(node, ast.At) else super()._eval(node, scope)

    def _at(self, node: ast.At, scope: Scope) -> Value:
        rank = self.integer(node.rank, scope, "the right side of `@`")
        world = self.recording.world
        bad = (rank < 0) | (rank >= world)
        if arrays.anywhere(bad):
            message = f"`@` names a rank that is none of the ranks 0 to {world - 1}"
            fail(scope, node.rank, "CL116", message, lanes=bad)
        ranks = arrays.broadcast(rank, scope.lanes)
        return self.eval(node.value, Elsewhere(scope, root_of(scope), ranks))

    def _independent(self, node: ast.Expr, scope: Scope) -> bool:
        """As for patterns; what another rank evaluates depends on nothing but that rank."""
        if isinstance(node, ast.At):
            names = [n for n in walk(node.value) if isinstance(n, ast.Name)]
            bound = [n for n in names if n.id in loop_variables(scope)]
            return all(
                super(ContractEvaluator, self)._independent(part, scope)
                for part in (node.rank, *bound)
            )
        parts = list(children(node))
        if not any(isinstance(part, ast.At) for part in walk(node)):
            return super()._independent(node, scope)
        return all(self._independent(part, scope) for part in parts)  # pyright: ignore

    def _old(self, node: ast.Call, scope: Scope) -> Value:
        return self.eval(node.args[0], Elsewhere(scope, self.root(old=True), scope.ranks))

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        value = super()._name(node, scope)
        if isinstance(value, Pinned):
            message = f"the tensor `{node.id}` of a loop inside `old(…)` or `… @ r`"
            hint = "loop over indices, and index the tensor inside"
            fail(scope, node, "CL104", message, hint=hint)
        return value

    # ------------------------------------------------------------------ contents

    def _binary(
        self, node: ast.Expr, op: str, left: ast.Expr, right: ast.Expr, scope: Scope
    ) -> Value:
        a, b = self.eval(left, scope), self.eval(right, scope)
        if isinstance(a, View) or isinstance(b, View):
            return self._combine(node, op, a, b, scope)
        return super()._binary(node, op, _known(left, a), _known(right, b), scope)

    def _unary(self, node: ast.Unary, scope: Scope) -> Value:
        value = self.eval(node.operand, scope)
        if isinstance(value, View) and node.op != "not":
            if node.op == "+":
                return value
            if node.op == "-":
                return self._combine(node, "*", value, -1, scope)
            return self._combine(node, "^", value, -1, scope)
        return super()._unary(replace(node, operand=_known(node.operand, value)), scope)

    def _combine(self, node: ast.Expr, op: str, a: Value, b: Value, scope: Scope) -> View:
        """Elementwise arithmetic of two tensors, or of a tensor and a number."""
        like, other = (a, b) if isinstance(a, View) else (b, a)
        self._check_operands(node, op, like, other, scope)
        return self.computed(Combined(op, a, b), like.shape, like.dtype, scope)

    def _check_operands(
        self, node: ast.Expr, op: str, like: View, other: Value, scope: Scope
    ) -> None:
        if op not in OPERATORS:
            hint = "contracts compute with + - * / & | ^, min and max"
            fail(scope, node, "CL103", f"`{op}` does not combine tensors", hint=hint)
        if isinstance(other, View):
            self.check_shapes(node, like, other, scope)
            if other.dtype != like.dtype:
                message = f"`{op}` combines {like.dtype} with {other.dtype}"
                fail(scope, node, "CL113", message)
        elif not arrays.is_number(other):
            fail(scope, node, "CL103", f"`{op}` needs a number, not {describe(other)}")
        elif not is_int(other) and like.dtype.family not in ("float", "complex"):
            fail(scope, node, "CL103", f"`{op}` of a {like.dtype} tensor and a fraction")

    def check_shapes(
        self, node: ast.Node, a: View, b: View, scope: Scope, live: Bool = True
    ) -> None:
        """Refuse tensors of different shapes on some of the lanes."""
        differs = arrays.logical_and(arrays.logical_not(views.same_shape(a, b)), live)
        if arrays.anywhere(differs):
            have, want = views.shape_text(a, differs), views.shape_text(b, differs)
            message = f"the contract sets shape {have} against shape {want}"
            fail(scope, node, "CL112", message, lanes=differs)

    def _compare_two(self, node: ast.Expr, op: str, a: Value, b: Value, scope: Scope) -> Bool:
        if not (isinstance(a, View) or isinstance(b, View)) or op in ("in", "not in"):
            return super()._compare_two(node, op, a, b, scope)
        other = b if isinstance(a, View) else a
        if isinstance(other, View):
            self.check_shapes(node, a, b, scope)
        elif not (arrays.is_number(other) or is_bool(other)):
            fail(scope, node, "CL103", f"`{op}` cannot compare a tensor with {describe(other)}")
        return self.compare_tensors(node, op, a, b, scope)

    def alike(self, values: tuple[Value, Value], scope: Scope) -> tuple[Value, Value]:
        """A number that stands where other lanes have a tensor is everywhere in one."""
        a, b = values
        if isinstance(b, View) and arrays.is_number(a):
            return filled(self, a, b, scope), b
        if isinstance(a, View) and arrays.is_number(b):
            return a, filled(self, b, a, scope)
        return values

    # --------------------------------------------------------------------- calls

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        func = node.func.inner if isinstance(node.func, ast.Paren) else node.func
        if isinstance(func, ast.Attr):
            return super()._call(node, scope)
        name = func.id if isinstance(func, ast.Name) else ""
        bound = scope.lookup(name) if name in scope.visible() else None
        if name == "old" and bound is None:
            return self._old(node, scope)
        if name == "fold" and bound is None:
            return fold(self, node, scope)
        extern = extern_of(name, scope)
        if extern is not None:
            return call_extern(self, node, extern, scope)
        if isinstance(func, ast.Call):
            bound = self.eval(func, scope)
        if bound is None and name in REDUCE_OPS and name != "premul_sum":
            bound = Op(ReduceOp(name))
        args = [self.eval(arg, scope) for arg in node.args]
        known = replace(node, args=tuple(map(_known, node.args, args)))
        if isinstance(bound, Op):
            return self._reduce(known, bound, args, scope)
        if bound is None and name == "concat":
            return concat(self, node, args[0], scope)
        if bound is None and name == "abs" and isinstance(args[0], View):
            negative = self._combine(node, "*", args[0], -1, scope)
            return self._combine(node, "max", args[0], negative, scope)
        return super()._call(known, scope)

    def apply(
        self, node: ast.Call, function: Function, values: tuple[Value, ...], scope: Scope
    ) -> Value:
        """Call a `let` function with values, as `node` says."""
        args = tuple(ast.Number(node.span, value, "", "") for value in values)
        return self._apply(replace(node, args=args), function, scope)

    def _reduce(self, node: ast.Call, op: Op, args: list[Value], scope: Scope) -> Value:
        if len(args) > 1 and any(isinstance(arg, View) for arg in args):  # min(a, b, …)
            result = args[0]
            for arg in args[1:]:
                result = self._combine(node, str(op.op), result, arg, scope)
            return result
        if len(args) == 1 and isinstance(args[0], View):
            hint = "write the list: `x[i] for i in range(…)`"
            fail(scope, node, "CL103", f"`{op.op}` of one tensor, which is no list", hint=hint)
        if len(args) == 1 and lists_tensors(args[0]):
            return reduce_tensors(self, node, op, args[0], scope)
        if isinstance(node.func, ast.Name) and node.func.id in ("sum", "min", "max"):
            return super()._call(node, scope)
        return reduce_numbers(node, op, args[0], scope)

    def _method(self, node: ast.Call, func: ast.Attr, scope: Scope) -> Value:
        base = self.eval(func.base, scope)
        strided = isinstance(base, View) and not arrays.everywhere(base.contiguous())
        if strided and func.name in ("reshape", "flatten"):
            base = self.computed(Packed(base), base.shape, base.dtype, scope)
        return super()._method(node, replace(func, base=_known(func.base, base)), scope)


def _known(node: ast.Expr, value: Value) -> ast.Expr:
    """An expression that has been evaluated, as a literal in its place."""
    return ast.Number(node.span, value, "", "")
