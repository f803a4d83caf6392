"""A branch that no rank ever takes (CL504).

Its condition is false for every rank of every world, whatever the parameters; or a condition above
it, in the same chain, is always true or the same. What stands there is never checked, since it is
never expanded: it may be wrong in any way.

Mostly a bound is off by one: `rank == world` for the last rank, which is `world - 1`. Only what
follows from 0 <= `rank` < `world` is reported, so a branch that is dead in the worlds that happen
to be checked is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.hygiene.truth import truth
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Label, Severity
from commlang.syntax import ast
from commlang.syntax.walk import same, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.resolve.modules import Module
    from commlang.source import Span

RULE = Rule(
    "CL504",
    "dead-branch",
    Severity.WARNING,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    if rank == world:  # CL504
        scale(x, 2)
""",
        """\
pattern main(x: float32[n], n = 8):
    if rank == 0:
        scale(x, 2)
    elif rank == 0:  # CL504
        scale(x, 3)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    if rank == world - 1:
        scale(x, 2)
    elif rank == 5:
        scale(x, 3)
""",
    ),
)


def check(module: Module) -> Iterator[Diagnostic]:
    """One finding per branch."""
    for pattern in module.definitions():
        for node in walk(pattern):
            if isinstance(node, ast.If):
                yield from _branches(module, node)


def _branches(module: Module, node: ast.If) -> Iterator[Diagnostic]:
    above: list[ast.Expr] = []
    for branch in node.branches:
        why = _why_dead(branch.condition, above)
        if why is not None:
            span, label = why
            labels = [Label(module.source, branch.span)]
            if span is not None:
                labels.append(Label(module.source, span, label))
            message = "no rank ever takes this branch"
            notes = () if span is not None else (label,)
            yield Diagnostic(RULE.code, message, tuple(labels), notes, None, RULE.severity)
        if branch.condition is not None:
            above.append(branch.condition)


def _why_dead(condition: ast.Expr | None, above: list[ast.Expr]) -> tuple[Span | None, str] | None:
    for earlier in above:
        if truth(earlier) is True:
            return earlier.span, "always true"
        if condition is not None and same(earlier, condition):
            return earlier.span, "the same condition"
    if condition is not None and truth(condition) is False:
        return None, "its condition is false for every rank of every world"
    return None
