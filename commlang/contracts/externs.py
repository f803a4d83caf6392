"""Externs called in contracts: functions of what they read and of their ints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.contracts.computed import Called, Filled, Made
from commlang.expand import arrays, binding
from commlang.expand.fault import fail
from commlang.expand.scope import Frame, Scope
from commlang.expand.values import Items, Value, View
from commlang.resolve.externs import given_in_contracts, is_written
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.contracts.evaluator import ContractEvaluator
    from commlang.resolve.modules import Definition


def extern_of(name: str, scope: Scope) -> Definition | None:
    """The extern that a name stands for, if nothing nearer is called so."""
    found = scope.frame.module.symbols.get(name)
    if found is None or name in scope.visible() or not isinstance(found.node, ast.Extern):
        return None
    return found


def call_extern(
    ev: ContractEvaluator, node: ast.Call, definition: Definition, scope: Scope
) -> Value:
    """What an extern writes: one tensor, or a list of as many as it writes."""
    extern = definition.node
    params = given_in_contracts(extern)
    assert params, "only resolved modules are evaluated"
    given = binding.collect(extern.name, params, node, ev, scope)
    inner = Scope(
        Frame(definition, ev.frame_ranks(scope), (*scope.frame.path, node)),
        scope.lanes,
        scope,
        None,
        instances=scope.instances,
    )
    ev.enter(inner, ev.frame_ranks(scope))
    tensors = {p.target.id: p for p in params if binding.is_tensor(p)}
    fills = {n: given.pop(n) for n in tensors if n in given and arrays.is_number(given[n].value)}
    binding.bind(params, given, ev, inner, scope)
    for name, argument in fills.items():
        inner.bind(name, _filled(ev, argument.value, tensors[name], inner))
    read: list[tuple[int, View]] = []
    made: list[Made] = []
    for operand, param in enumerate(p for p in extern.params if binding.is_tensor(p)):
        name = param.target.id
        if param in params and name not in inner.vars:
            fail(scope, node, "CL102", f"`{extern.name}` needs a tensor for `{name}`")
        view = inner.vars.get(name)
        if isinstance(view, View):
            read.append((operand, view))
        if is_written(param):
            made.append(_made(ev, operand, param, inner, view))
    for statement in extern.body:
        if isinstance(statement, ast.Require):
            ev.block((statement,), inner, None)
    numbers = {
        p.target.id: inner.vars[p.target.id] for p in extern.params if not binding.is_tensor(p)
    }
    results = ev.called(Called(definition, tuple(read), numbers, tuple(made)), scope)
    return results[0] if len(results) == 1 else Items(tuple(results))


def _filled(ev: ContractEvaluator, value: Value, param: ast.Param, inner: Scope) -> View:
    """A number given for a tensor: it is everywhere in it."""
    dtype, dims = binding.declared(param, inner)
    return ev.computed(Filled(value), ev.shape(dims, inner), dtype, inner)


def _made(ev: ContractEvaluator, operand: int, param: ast.Param, inner: Scope, view: Value) -> Made:
    if isinstance(view, View):
        return Made(operand, view.shape, view.dtype)
    dtype, dims = binding.declared(param, inner)
    return Made(operand, ev.shape(dims, inner), dtype)
