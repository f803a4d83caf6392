"""The state of checking one file: its findings and the names of the definition at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.diagnostics import Diagnostic, Label, did_you_mean
from commlang.resolve.kinds import UNKNOWN, Type
from commlang.resolve.scope import Binding, Scope
from commlang.source import Span
from commlang.syntax.parser import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.resolve.modules import Module
    from commlang.syntax import ast

MAX_HINTS = 100
"""Findings that get a nearest name: the search is slow and nobody reads on after so many."""

MAX_CODE = 40


class Context:
    """Collects findings; a statement's finding never stops the ones after it."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.source = module.source
        self.findings: list[Diagnostic] = []
        self.handles: dict[str, tuple[int, Span]] = {}
        """Handles of the pattern at hand: number of indices and place of the first binding."""
        self.bound: dict[str, Span] = {}
        """Every name that the definition at hand binds anywhere."""
        self.ambiguous: set[ast.Node] = set()
        """Each `rank` inside an `E @ r`."""

    def report(
        self,
        code: str,
        span: Span,
        message: str,
        hint: str | None = None,
        other: tuple[Span, str] | None = None,
    ) -> None:
        """Add a finding; `other` is a second place, with what is to be said of it."""
        labels = [Label(self.source, span)]
        if other is not None:
            labels.append(Label(self.source, *other))
        self.findings.append(Diagnostic(code, message, tuple(labels), help=hint))

    def suggest(self, name: str, known: Iterable[str]) -> str | None:
        """A help line with the nearest known name."""
        return did_you_mean(name, known) if len(self.findings) < MAX_HINTS else None

    def code(self, node: ast.Node, fallback: str = "…") -> str:
        """The text of an expression for use in a message, or `fallback` if it is long."""
        text = self.source.text[node.span.start : node.span.end]
        return text if len(text) <= MAX_CODE and "\n" not in text else fallback

    def line(self, span: Span) -> int:
        """The line of a span, counted from 1."""
        return self.source.position(span.start)[0]

    def reserved(self, name: str, span: Span) -> bool:
        """Whether a name is a reserved word, which is reported; the parser has seen to targets."""
        if name in RESERVED:
            message = f"`{name}` is a reserved word and cannot be a name"
            self.report("CL105", Span(span.start, span.start + len(name)), message)
        return name in RESERVED

    def bind(self, scope: Scope, name: str, span: Span, type_: Type, word: str) -> None:
        """Bind a name in a block; reports a name that the block has bound already."""
        before = scope.names.get(name)
        if before is None:
            scope.names[name] = Binding(type_, span, word)
            return
        self.report(
            "CL105",
            span,
            f"`{name}` is bound already in this block, as {before.word}",
            "a block binds a name once; choose another",
            (before.span, "bound here first"),
        )
        scope.names[name] = Binding(UNKNOWN, before.span, before.word)
