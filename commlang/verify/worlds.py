"""How many ranks a pattern runs on when nobody says."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from commlang.errors import PatternError
from commlang.expand.binding import is_tensor
from commlang.expand.run import expand
from commlang.resolve.modules import Definition
from commlang.syntax import ast
from commlang.syntax.walk import walk
from commlang.verify.values import MAX_WORLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlang.diagnostics import Diagnostic

CANDIDATES = (4, *range(2, 65), 1)
"""Worlds in the order in which they are tried: small ones run anywhere, one rank shows little."""

_PROBE = 1 << 18
"""Most events that are expanded to see whether a world will do."""

REQUIRED = "CL124"
"""The code of a `require` that does not hold."""

_PLACES = frozenset({"rank", "ranks", "world"})


def default_world(definition: Definition, values: Mapping[str, Any]) -> int:
    """The number of ranks for a pattern with these parameters.

    That of its first mesh whose sizes do not depend on the world, else 4, else the smallest from 2
    up, at which every `require`, mesh and parameter holds. Raises PatternError, with what does not
    hold for 4, if there is none up to 64.
    """
    meshed = _mesh_world(definition, values)
    if meshed is not None:
        return meshed
    first: PatternError | None = None
    for world in CANDIDATES:
        fault = _fault(definition, world, values)
        if fault is None:
            return world
        first = first or fault
    assert first is not None
    note = f"said of a world of {CANDIDATES[0]}; none of 1 to {max(CANDIDATES)} ranks will do"
    told = [replace(d, notes=(note,), help=d.help or _hint(d.code)) for d in first.diagnostics]
    raise PatternError(told)


def _hint(code: str) -> str | None:
    return "choose another world" if code == REQUIRED else None


def _fault(definition: Definition, world: int, values: Mapping[str, Any]) -> PatternError | None:
    """Why the pattern cannot run in a world of that size, where it might in another."""
    try:
        expand(definition, world, values, max_events=_PROBE)
    except PatternError as error:
        if any(about_world(d, definition) for d in error.diagnostics):
            return error
    return None


def about_world(found: Diagnostic, definition: Definition) -> bool:
    """Whether another world may do: a mesh, a `require`, or the arithmetic of a parameter."""
    if found.code in ("CL123", REQUIRED):
        return True
    if found.code not in ("CL110", "CL112") or not found.labels:
        return False
    label = found.labels[0]
    return label.source is definition.module.source and any(
        p.span.start <= label.span.start < p.span.end for p in definition.node.params
    )


def _mesh_world(definition: Definition, values: Mapping[str, Any]) -> int | None:
    """The product of the sizes of a mesh that does not depend on the world."""
    body = definition.node.body
    lets = {s.target.id: s for s in body if isinstance(s, ast.Let)}
    for statement in body:
        if isinstance(statement, ast.Mesh):
            world = _product(definition, statement, lets, values)
            if world is not None:
                return world
    return None


def _product(
    definition: Definition,
    mesh: ast.Mesh,
    lets: Mapping[str, ast.Let],
    values: Mapping[str, Any],
) -> int | None:
    """Evaluate the axes as the defaults of parameters, which `let` definitions become too."""
    scalars = [p for p in definition.node.params if not is_tensor(p)]
    known = {name: let.value for name, let in lets.items()}
    known |= {p.target.id: p.default for p in scalars if p.default and p.target.id not in values}
    used = set(_used(mesh, known))
    if used & _PLACES:
        return None
    scalars = [p for p in scalars if p.target.id in used]
    helpers = [_param(name, let.value) for name, let in lets.items() if name in used]
    axes = [_param(f"axis {number}", axis.value) for number, axis in enumerate(mesh.axes)]
    node = replace(definition.node, params=(*scalars, *helpers, *axes), body=())
    declared = {p.target.id for p in scalars}
    given = {name: value for name, value in values.items() if name in declared}
    try:
        found = expand(Definition(node, definition.module), 1, given).parameters
    except PatternError:
        return None
    sizes = [found[axis.target.id] for axis in axes]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    world = prod(sizes)
    return world if world <= MAX_WORLD else None


def _param(name: str, value: ast.Expr) -> ast.Param:
    return ast.Param(value.span, ast.Target(value.span, name), None, None, value)


def _used(node: ast.Node, known: Mapping[str, ast.Expr]) -> Iterator[str]:
    """Every name that an expression depends on, through the definitions that are known."""
    seen: set[str] = set()
    waiting: list[ast.Node] = [node]
    while waiting:
        for part in walk(waiting.pop()):
            if isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                yield part.id
                if part.id in known:
                    waiting.append(known[part.id])
