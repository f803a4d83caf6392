"""From a pattern and its parameters to a recording: the entry of the evaluator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.diagnostics import Diagnostic, did_you_mean
from commlang.dtypes import DTYPES, DType
from commlang.errors import PatternError, UsageError
from commlang.expand import binding
from commlang.expand.arrays import ArithmeticFault
from commlang.expand.fault import fail
from commlang.expand.groups import GroupEntry, GroupTable
from commlang.expand.record import Recording
from commlang.expand.recursion import deep_recursion
from commlang.expand.scope import Frame, Scope
from commlang.expand.statements import Evaluator
from commlang.expand.values import Group, Items, Op, Value, View, is_list, is_tuple
from commlang.operations import ReduceOp
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.resolve.modules import Definition

MAX_EVENTS = 50_000_000
"""Default bound on the events of an expanded pattern."""

MAX_WORLD = 1 << 20
"""Most ranks of a world."""

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]
"""Tensors that the caller brings: dtype name and shape, by parameter."""


def expand(
    definition: Definition,
    world: int,
    values: Mapping[str, Any] | None = None,
    *,
    shapes: Shapes | None = None,
    ranks: Iterable[int] | None = None,
    groups: Iterable[GroupEntry] = (),
    max_events: int = MAX_EVENTS,
    keep_values: bool = False,
    evaluator_of: Callable[[Recording, int], Evaluator] = Evaluator,
) -> Recording:
    """Evaluate a pattern for some ranks of a world (all by default); raises PatternError.

    `values` holds ints, bools, Fractions, op names and nested lists by parameter. `groups` are
    those of a whole plan, so that a rank expanded alone numbers them alike. `evaluator_of` is for
    those who want to watch the evaluation.
    """
    if not 1 <= world <= MAX_WORLD:
        raise UsageError(f"a world of {world:,} ranks; there can be 1 to {MAX_WORLD:,}")
    lanes = np.arange(world) if ranks is None else np.asarray(sorted(ranks), dtype=np.int64)
    table = GroupTable(world, groups)
    everyone = Group(0, table, 0)
    frame = Frame(definition, everyone, ())
    scope = Scope(frame, len(lanes), None, None)
    scope.ranks = lanes
    recording = Recording(world, lanes, table, definition, dict(values or {}), dict(shapes or {}))
    evaluator = evaluator_of(recording, max_events)
    evaluator.keep_values = keep_values
    with deep_recursion():
        evaluator.enter(scope, everyone)
        _bind(evaluator, definition, values or {}, shapes or {}, scope)
        _keep_parameters(recording, definition, scope)
        evaluator.block(definition.node.body, scope, None)
        recording.slots = scope.slots
    return recording


def to_value(value: Any) -> Value:
    """A Python value as a value of the language; raises UsageError for anything else."""
    match value:
        case bool() | int() | Fraction() | Op() | DType():
            return value
        case str() if value in ReduceOp.__members__.values():
            return Op(ReduceOp(value))
        case str() if value in DTYPES:
            return DTYPES[value]
        case _ if is_list(value) or is_tuple(value):
            return Items(tuple(map(to_value, value)))
        case np.ndarray() | np.integer():
            return to_value(value.tolist())
        case float() if math.isfinite(value):
            return Fraction(value)
        case str():
            return value
        case _:
            raise UsageError(f"{value!r} cannot be the value of a parameter")


def parameter_names(node: ast.Pattern | ast.Extern) -> list[str]:
    """Everything that can be set: parameters that are no tensors, and names in shapes."""
    names = [p.target.id for p in node.params if not binding.is_tensor(p)]
    tensors = {p.target.id for p in node.params if binding.is_tensor(p)}
    for param in node.params:
        for dim in (param.type.shape or ()) if param.type else ():
            if isinstance(dim, ast.Name) and dim.id not in names and dim.id not in tensors:
                names.append(dim.id)
    return [n for n in names if n not in ("rank", "world", "ranks")]


def _bind(
    evaluator: Evaluator,
    definition: Definition,
    values: Mapping[str, Any],
    shapes: Shapes,
    scope: Scope,
) -> None:
    node = definition.node
    declared = {p.target.id: p for p in node.params}
    known = parameter_names(node)
    given: dict[str, binding.Argument] = {}
    for name, value in values.items():
        if name not in known:
            text = f"`{node.name}` has no parameter `{name}`"
            raise PatternError([Diagnostic("CL121", text, help=did_you_mean(name, known))])
        place: ast.Node = declared.get(name, node)
        given[name] = binding.Argument(to_value(value), place)
        if name not in declared:
            scope.bind(name, given.pop(name).value)
    for name, (dtype, shape) in shapes.items():
        param = declared.get(name)
        if param is None or not binding.is_tensor(param):
            tensors = [p.target.id for p in node.params if binding.is_tensor(p)]
            text = f"`{node.name}` has no tensor parameter `{name}`"
            raise PatternError([Diagnostic("CL121", text, help=did_you_mean(name, tensors))])
        view = _parameter(evaluator, param, DTYPES[dtype], tuple(shape), scope)
        given[name] = binding.Argument(view, param)
    binding.bind(node.params, given, evaluator, scope, scope)
    _allocate(evaluator, node, scope)


def _allocate(evaluator: Evaluator, node: ast.Pattern | ast.Extern, scope: Scope) -> None:
    """Tensors that the caller does not bring, of their declared shape."""
    for param in node.params:
        if param.target.id in scope.vars:
            continue
        dtype, dims = binding.declared(param, scope)
        for dim in dims:
            if isinstance(dim, ast.Name) and dim.id not in scope.vars:
                hint = f"`--set {dim.id}=…`, or give it a default: `{dim.id} = 1Ki`"
                fail(scope, dim, "CL121", f"`{dim.id}` has no value", hint=hint)
        try:
            view = _parameter(evaluator, param, dtype, evaluator.shape(dims, scope), scope)
        except ArithmeticFault as fault:
            evaluator.refuse(fault, param, scope)
        scope.bind(param.target.id, view)


def _parameter(
    evaluator: Evaluator, param: ast.Param, dtype: Any, shape: Sequence[Any], scope: Scope
) -> View:
    return evaluator.recording.allocate(
        param.target.id,
        dtype,
        tuple(shape),
        param,
        scope,
        block=None,
        distinct=False,
        frame=scope.frame,
    )


def _keep_parameters(recording: Recording, definition: Definition, scope: Scope) -> None:
    for name, value in scope.vars.items():
        if isinstance(value, View):
            recording.tensors[name] = value
        elif name not in ("rank", "world", "ranks"):
            recording.parameters[name] = value
