"""Values of parameters that people write: after `--set`, and in presets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.diagnostics import Diagnostic, Label, did_you_mean
from commlang.dtypes import DType
from commlang.errors import PatternError, UsageError
from commlang.expand import arrays
from commlang.expand.expressions import Expressions
from commlang.expand.groups import GroupTable
from commlang.expand.run import parameter_names
from commlang.expand.scope import Frame, Scope
from commlang.expand.values import SEQUENCES, Group, Op, Table, describe, is_list
from commlang.resolve.modules import Definition, Module
from commlang.syntax import ast
from commlang.syntax.parser import parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commlang.source import Source

MAX_ITEMS = 1 << 20
"""Longest list that a value may be, and most steps to work one out."""

MAX_WORLD = 1 << 20
"""Most ranks that a world may have."""


def parse_value(text: str, where: str) -> Any:
    """The value of a constant expression: an int, bool, Fraction, op name or nested list of ints.

    No names but `true`, `false` and the ops are known. A `premul_sum(…)` stays an Op. Raises
    UsageError, whose text starts with `where`, for anything else.
    """
    try:
        source, node = parse_expression(text, where)
        return _constant(node, source, {})
    except PatternError as error:
        found = error.diagnostics[0]
        quoted = f"`{text}`"
        message = found.message if quoted in found.message else f"{quoted}: {found.message}"
        hint = f"; {found.help}" if found.help else ""
        if found.code == "CL101":  # what is near to it would be as unknown here
            hint = "; a value is made of constants"
        raise UsageError(f"{where}: {message}{hint}") from None


def parse_settings(texts: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """Values by name from `name=value` texts; raises UsageError."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier() or not value.strip():
            raise UsageError(f"{option} {text}: write name=value, as in `{option} n=4Ki`")
        if name in ("world", "rank", "ranks"):
            ranks = "the number of ranks is `--world N` of lint, `--nproc-per-node N` of run"
            hint = ranks if name == "world" else "it follows from the world"
            raise UsageError(f"{option} {text}: `{name}` is no parameter; {hint}")
        if name in values:
            raise UsageError(f"{option} {text}: `{name}` is set twice")
        values[name] = parse_value(value, f"{option} {name}")
    return values


def presets(definition: Definition) -> dict[str, ast.Preset]:
    """The presets of a pattern by name, in order."""
    return {s.name: s for s in definition.node.body if isinstance(s, ast.Preset)}


def preset_values(
    definition: Definition, name: str, world: int | None = None
) -> tuple[int | None, dict[str, Any]]:
    """The world (None: not given) and the parameters that a preset sets.

    Its values are constants; they may use `world`, which is the preset's own unless `world` says
    otherwise. Raises UsageError for a name that is no preset, PatternError for other values.
    """
    known = presets(definition)
    if name not in known:
        raise UsageError(f"`{definition.node.name}` has no preset `{name}`; {_hint(name, known)}")
    given = {keyword.name: keyword for keyword in known[name].values}
    source = definition.module.source
    own = given.pop("world", None)
    if world is None and own is not None:
        world = _constant(own.value, source, {}, f"in preset `{name}`")
        if not isinstance(world, int) or not 1 <= world <= MAX_WORLD:
            message = f"a world has from 1 to {MAX_WORLD:,} ranks"
            raise PatternError([Diagnostic("CL103", message, (Label(source, own.value.span),))])
    names = {} if world is None else {"world": world}
    values = {
        key: _constant(keyword.value, source, names, f"in preset `{name}`")
        for key, keyword in given.items()
    }
    return world, values


def unset(definition: Definition, values: Mapping[str, Any]) -> list[str]:
    """Parameters without value or default, which no shape of a table that has one binds."""
    params = definition.node.params
    known = {*values, *(p.target.id for p in params if p.default is not None)}
    for param in params:
        if param.type and param.type.name == "int" and param.target.id in known:
            known |= {d.id for d in param.type.shape or () if isinstance(d, ast.Name)}
    return [n for n in parameter_names(definition.node) if n not in known]


def format_value(value: Any) -> str:
    """A value as one would write it: `256Mi`, `sum`, `[1, 2]`."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return _size(value)
        case _ if is_list(value):
            return f"[{', '.join(map(format_value, value))}]"
        case Op(op, factor):
            return str(op) if factor is None else f"{op}({factor})"
        case Table(array, prefix):
            return format_value(array[prefix].tolist())
        case _:
            return str(value)


def _size(value: int) -> str:
    for power, prefix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value and value % (1 << power) == 0:
            return f"{value >> power}{prefix}"
    for power, prefix in ((9, "G"), (6, "M")):
        if value and value % 10**power == 0:
            return f"{value // 10**power}{prefix}"
    return str(value)


def _hint(name: str, known: Iterable[str]) -> str:
    listed = ", ".join(f"`{other}`" for other in known)
    fallback = f"its presets are {listed}" if listed else "it has none"
    return did_you_mean(name, known) or fallback


def _constant(
    node: ast.Expr, source: Source, names: Mapping[str, int], note: str | None = None
) -> Any:
    """Evaluate on one lane that knows the given names only; raises PatternError with `note`."""
    # A frame without a pattern: nothing but the source of messages is asked of it here.
    module = Module(source, ast.Module(node.span, (), ()))
    pattern = ast.Pattern(node.span, ast.Target(node.span, "value"), (), None, ())
    frame = Frame(Definition(pattern, module), Group(0, GroupTable(1), 0), ())
    scope = Scope(frame, 1, None, None)
    scope.ranks = np.zeros(1, dtype=np.int64)
    for name, value in names.items():
        scope.bind(name, value)
    try:
        value = Expressions(MAX_ITEMS).eval(node, scope)
    except PatternError as error:
        found = error.diagnostics[0]
        notes = (note,) if note else ()  # in place of what it says of a rank
        fault = Diagnostic(found.code, found.message, found.labels, notes, found.help)
        raise PatternError([fault]) from None
    try:
        return _plain(value)
    except _NotPlainError as fault:
        label = Label(source, node.span)
        raise PatternError([Diagnostic("CL103", str(fault), (label,))]) from None


class _NotPlainError(Exception):
    """What a value is, where a parameter can take no such value."""


def _plain(value: Any) -> Any:
    """A value of the language as a Python value."""
    match value:
        case bool() | int() | Fraction():
            return value
        case DType(name):
            return name
        case Op(op, factor):
            return str(op) if factor is None else value
        case _ if arrays.is_array(value):
            return arrays.lane(value, 0)
        case _ if isinstance(value, SEQUENCES):
            length = arrays.lane(value.length, 0)
            if length > MAX_ITEMS:
                raise _NotPlainError(f"a list of {length:,} items is too long for a parameter")
            return [_plain(value.at(i)) for i in range(length)]
        case _:
            raise _NotPlainError(f"a parameter cannot be {describe(value)}")
