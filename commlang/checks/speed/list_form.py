"""A list of tensors where one tensor would do (CL406).

`all_gather`, `reduce_scatter` and `all_to_all` take lists, one tensor per rank. Backends move one
block of memory: torch copies a list into one, or one into a list, on every call. The `_single`
forms take one tensor whose parts lie end to end and need no copy. All parts must then be of one
length; a list of chunks of a tensor with `world` as a factor of its first dimension is such in
every world, and only those are told.

Give the tensor itself to the `_single` form.

- [torch.distributed.all_gather_into_tensor](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.refusals import first_rows
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Edit, Fix, Severity
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.expand.record import Site

RULE = Rule(
    "CL406",
    "list-form",
    Severity.ADVICE,
    invalid=(
        """\
pattern main(rows: float32[world, n], row: float32[n], n = 8):
    all_gather(rows.chunks(world), row)  # CL406
""",
        """\
pattern main(y: float32[world * n], x: float32[world * n], n = 8):
    let parts = x.chunks(world)
    work = async all_to_all(y.chunks(world), parts)  # CL406
    wait(work)
""",
    ),
    valid=(
        """\
pattern main(rows: float32[world, n], row: float32[n], n = 8):
    all_gather_single(rows, row)
""",
        """\
pattern main(whole: float32[n], part: float32[share(n, world, rank)], n = 8):
    all_gather(whole.chunks(world), part)
""",
    ),
)

_LISTS = {"all_gather": (0,), "reduce_scatter": (1,), "all_to_all": (0, 1)}
"""Which arguments are lists."""


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per call in the text."""
    told: set[object] = set()
    for number, row in first_rows(facts).items():
        site = facts.program.sites[number]
        place = (site.source.path, site.span)
        if site.name not in _LISTS or place in told:
            continue
        told.add(place)
        found = _call_at(facts, site)
        tensors = found and _tensors(*found, _LISTS[site.name])
        if found and tensors:
            yield _report(facts, row, site, found[1], tensors)


def _call_at(facts: Facts, site: Site) -> tuple[ast.Pattern, ast.Call] | None:
    for module in facts.program.definition.module.reachable():
        if module.source is not site.source:
            continue
        for node in walk(module.tree):
            if isinstance(node, ast.Pattern):
                for inner in walk(node):
                    if isinstance(inner, ast.Call) and inner.span == site.span:
                        return node, inner
    return None


def _tensors(pattern: ast.Pattern, call: ast.Call, lists: tuple[int, ...]) -> dict[int, str] | None:
    """The tensor behind each list argument, None if one may have parts of unequal lengths."""
    if len(call.args) < 2 or any(keyword.name != "op" for keyword in call.keywords):
        return None
    found: dict[int, str] = {}
    for index in lists:
        name = _chunked(pattern, call.args[index])
        if name is None or not _divides(pattern, name):
            return None
        found[index] = name
    return found


def _chunked(pattern: ast.Pattern, node: ast.Expr) -> str | None:
    """The name `x` of `x.chunks(world)`, be it by way of a `let`."""
    if isinstance(node, ast.Name):
        lets = [s for s in walk(pattern) if isinstance(s, ast.Let) and s.target.id == node.id]
        node = lets[0].value if len(lets) == 1 else node
    match node:
        case ast.Call(func=ast.Attr(base=ast.Name(id=name), name="chunks"), keywords=()):
            one = node.args[0] if len(node.args) == 1 else None
            return name if isinstance(one, ast.Name) and one.id == "world" else None
        case _:
            return None


def _divides(pattern: ast.Pattern, name: str) -> bool:
    """Whether a tensor of that name is declared once, with `world` as a factor of dim 0."""
    found: list[ast.TypeRef | None] = [p.type for p in pattern.params if p.target.id == name]
    for node in walk(pattern):
        if isinstance(node, ast.Temp) and node.target.id == name:
            found.append(node.type)
        elif isinstance(node, ast.Let | ast.LetFunction) and node.target.id == name:
            return False
    kind = found[0] if len(found) == 1 else None
    return kind is not None and bool(kind.shape) and _has_world(kind.shape[0])


def _has_world(node: ast.Expr) -> bool:
    match node:
        case ast.Name(id=name):
            return name == "world"
        case ast.Paren(inner=inner):
            return _has_world(inner)
        case ast.Binary(op="*", left=left, right=right):
            return _has_world(left) or _has_world(right)
        case _:
            return False


def _report(
    facts: Facts, row: int, site: Site, call: ast.Call, tensors: dict[int, str]
) -> Diagnostic:
    message = f"{site.name} of a list whose parts lie end to end in one tensor"
    new = f"{site.name}_single"
    arguments = [site.source.excerpt(a.span) for a in call.args]
    for index, name in tensors.items():
        arguments[index] = name
    edits = [Edit(call.func.span, new)]
    edits += [Edit(call.args[index].span, name) for index, name in tensors.items()]
    rest = [f"{k.name}={site.source.excerpt(k.value.span)}" for k in call.keywords]
    hint = f"write `{new}({', '.join([*arguments, *rest])})`"
    notes = ("torch copies between a list and the block of memory that the backend moves",)
    return Diagnostic(
        RULE.code,
        message,
        (facts.label(row),),
        notes,
        hint,
        severity=Severity.ADVICE,
        fix=Fix(site.source, tuple(edits)),
    )
