"""A parameter that nothing uses (CL502).

Whoever runs the pattern gives this parameter, and it changes nothing: neither a statement nor a
contract, a shape or another default names it. A tensor that is never touched is the same mistake;
it costs memory on every rank.

Use it, or remove it here and from its callers. Where an interface asks for it, let its name begin
with `_`. A pattern whose body is `pass` only stands for one that will be written, and is left
alone.
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
    "CL502",
    "unused-parameter",
    Severity.WARNING,
    invalid=(
        """\
pattern main(x: float32[n], root = 0, n = 8):  # CL502
    broadcast(x, src=0)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], root = 0, n = 8):
    broadcast(x, src=root)
""",
        """\
pattern main(x: float32[n], _root = 0, n = 8):
    broadcast(x, src=0)
""",
    ),
)


def check(module: Module) -> Iterator[Diagnostic]:
    """One finding per parameter."""
    for pattern in module.definitions():
        if not isinstance(pattern, ast.Pattern) or _is_stub(pattern):
            continue
        for found in unused(pattern, frozenset({Kind.PARAMETER})):
            labels = (Label(module.source, found.span),)
            message = f"parameter `{found.name}` of `{pattern.name}` is never used"
            hint = f"remove it, or call it `_{found.name}` if callers must give it"
            yield Diagnostic(RULE.code, message, labels, (), hint, RULE.severity)


def _is_stub(pattern: ast.Pattern) -> bool:
    return all(isinstance(node, ast.Pass | ast.Preset | ast.Require) for node in pattern.body)
