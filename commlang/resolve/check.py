"""All static findings of a file at once, before any parameter is known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.resolve.context import Context
from commlang.resolve.definitions import check_definition
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Module
    from commlang.source import Span


def check_module(module: Module) -> list[Diagnostic]:
    """The findings of one file, in source order; those of its imports are left out.

    Codes: CL101 unknown name, CL102 wrong argument, CL103 wrong type, CL104 wrong place,
    CL105 duplicate name. Only what is wrong for every value of the parameters is reported.
    """
    ctx = Context(module)
    _unique_symbols(ctx)
    for definition in module.definitions():
        check_definition(definition, ctx)
    return sorted(ctx.findings, key=lambda finding: finding.labels[0].span.start)


def check_all(module: Module) -> list[Diagnostic]:
    """The findings of a file and then of all it draws in, each with a note of its import."""
    return [
        replace(finding, notes=(*finding.notes, *reached.origin()))
        for reached in module.reachable()
        for finding in check_module(reached)
    ]


def _unique_symbols(ctx: Context) -> None:
    first: dict[str, Span] = {}
    for item in ctx.module.tree.items:
        named = [n.alias for n in item.names] if isinstance(item, ast.Import) else [item.target]
        for target in named:
            before = first.setdefault(target.id, target.span)
            if before != target.span:
                message = f"`{target.id}` is already defined in this file"
                hint = f"import it by another name: `{target.id} as …`"
                ctx.report(
                    "CL105",
                    target.span,
                    message,
                    hint if isinstance(item, ast.Import) else None,
                    (before, "defined here first"),
                )
