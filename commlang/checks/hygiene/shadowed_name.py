"""A name that hides another (CL505).

An inner block binds a name that an outer one has bound already. The language allows it, but from
here to the end of the block the name stands for something else than above and below, and a line
that is moved by one level changes its meaning without an error. The same goes for a name that the
language itself uses, such as `sum` or `range`.

Choose another name for one of the two. Variables of list comprehensions, of contracts and of `let`
functions are left alone: their scope is a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.hygiene.bindings import Binding, Kind, bindings
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Label, Severity
from commlang.operations import FUNCTIONS, REDUCE_OPS
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.resolve.modules import Module

RULE = Rule(
    "CL505",
    "shadowed-name",
    Severity.WARNING,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    let part = x[:4]
    for i in range(2):
        let part = x[i * 4 :][:4]  # CL505
        all_reduce(part)
    scale(part, 2)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    let first = x[:4]
    for i in range(2):
        let part = x[i * 4 :][:4]
        all_reduce(part)
    scale(first, 2)
""",
        """\
pattern main(x: float32[n], n = 8):
    for i in range(2):
        all_reduce(x)
    for i in range(2):
        scale(x, sum(i for i in range(3)))
""",
    ),
)


def check(module: Module) -> Iterator[Diagnostic]:
    """One finding per name that hides another."""
    for pattern in module.definitions():
        if isinstance(pattern, ast.Pattern):
            for found in bindings(pattern):
                if found.kind is not Kind.INNER and (found.shadows or _is_builtin(found)):
                    yield _report(module, found)


def _is_builtin(binding: Binding) -> bool:
    return binding.name in FUNCTIONS or binding.name in REDUCE_OPS


def _report(module: Module, binding: Binding) -> Diagnostic:
    labels = [Label(module.source, binding.span)]
    if binding.shadows is not None:
        labels.append(Label(module.source, binding.shadows.span, "hidden from here on"))
        message = f"{binding.kind} `{binding.name}` hides the {binding.shadows.kind} of that name"
    else:
        message = f"{binding.kind} `{binding.name}` hides the built-in of that name"
    return Diagnostic(RULE.code, message, tuple(labels), (), "choose another name", RULE.severity)
