"""Edits of statements, for rules whose help a program can carry out.

A rule gives its finding a `fix`; `commlang lint --fix` applies it, checks the file again and keeps
the result only if comments are all there and nothing new is found. So an edit need not be right in
every case, but where it is kept it must do what the help says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.diagnostics import Edit, Fix
from commlang.source import Span
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.expand.record import Site
    from commlang.source import Source

_INDENT = "    "


def replace_statement(site: Site, text: str) -> Fix:
    """Write something else in place of a statement."""
    return Fix(site.source, (Edit(site.span, text),))


def remove_statement(facts: Facts, site: Site) -> Fix | None:
    """Take a statement out, with its line; None if the line has a comment, which would be lost."""
    source, span = site.source, site.span
    block = next((b for b in _blocks(facts, source) if any(s.span == span for s in b)), None)
    start, end = _lines(source, span)
    if block is None or source.text[start:end].strip() != source.text[span.start : span.end]:
        return None
    if len(block) == 1:
        return Fix(source, (Edit(span, "pass"),))
    return Fix(source, (Edit(Span(start, end), ""),))


def wrap_statements(
    facts: Facts, first: Site, last: Site, above: str, below: str = ""
) -> Fix | None:
    """Put two statements under the line `above`, indented; None if they are not neighbours.

    `above` and `below` may be several lines, which get the indentation of the statements.
    """
    source = first.source
    if last.source is not source or not _neighbours(facts, first, last):
        return None
    start, end = _lines(source, Span(first.span.start, last.span.end))
    text = source.text
    indent = text[start : first.span.start]
    deeper = "\t" if indent.endswith("\t") else _INDENT
    edits = [Edit(Span(start, start), _block(above, indent))]
    line = start
    while line < end:
        if text[line : text.find("\n", line)].strip():
            edits.append(Edit(Span(line, line), deeper))
        line = text.find("\n", line) + 1 or end
    if below:
        gap = "" if text[end - 1 : end] == "\n" else "\n"
        edits.append(Edit(Span(end, end), gap + _block(below, indent)))
    return Fix(source, (Edit(edits[0].span, edits[0].text + edits[1].text), *edits[2:]))


def names_in(facts: Facts, source: Source) -> set[str]:
    """Every name that a source binds or uses."""
    return {
        node.id
        for module in facts.program.definition.module.reachable()
        if module.source is source
        for node in walk(module.tree)
        if isinstance(node, ast.Name | ast.Target)
    }


def _neighbours(facts: Facts, first: Site, last: Site) -> bool:
    for block in _blocks(facts, first.source):
        spans = [statement.span for statement in block]
        if first.span in spans:
            return spans[spans.index(first.span) + 1 :][:1] == [last.span]
    return False


def _blocks(facts: Facts, source: Source) -> Iterator[tuple[ast.Stmt, ...]]:
    for module in facts.program.definition.module.reachable():
        if module.source is source:
            for node in walk(module.tree):
                if isinstance(
                    node, ast.Pattern | ast.For | ast.Branch | ast.Parallel | ast.Sequence
                ):
                    yield node.body


def _lines(source: Source, span: Span) -> tuple[int, int]:
    """Where the lines of a span start and end, the last newline included."""
    start = source.text.rfind("\n", 0, span.start) + 1
    end = source.text.find("\n", span.end)
    return start, len(source.text) if end < 0 else end + 1


def _block(text: str, indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in text.split("\n"))
