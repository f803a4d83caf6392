"""A temp that nothing uses (CL501).

The tensor is made, on every rank and in every turn of the loops around it, and nothing reads or
writes it. Mostly it is left over from a change, or an operation uses another buffer than was meant:
look for one that is used twice.

Use it, or remove the line. A name that begins with `_` is not reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.hygiene.bindings import Kind, unused
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Label, Severity
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.resolve.modules import Module

RULE = Rule(
    "CL501",
    "unused-buffer",
    Severity.WARNING,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    temp inbox: like x  # CL501
    all_reduce(x)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    temp inbox: like x
    x -> inbox
    all_reduce(inbox)
    inbox -> x
""",
    ),
)


def check(module: Module) -> Iterator[Diagnostic]:
    """One finding per temp."""
    for pattern in module.definitions():
        if isinstance(pattern, ast.Pattern):
            for found in unused(pattern, frozenset({Kind.TEMP})):
                labels = (Label(module.source, found.span),)
                message = f"temp `{found.name}` is never used"
                hint = "remove the line, or name it where it is meant"
                yield Diagnostic(RULE.code, message, labels, (), hint, RULE.severity)
