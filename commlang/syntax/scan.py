"""One pass over the raw text: its comments, and the strings and brackets that do not match."""

from __future__ import annotations

import re
from typing import NamedTuple

from commlang.diagnostics import Diagnostic, Label
from commlang.source import Source, Span
from commlang.syntax import ast

MAX_DEPTH = 100
"""Deepest nesting of brackets, blocks or operators: what a person would never write."""

_PIECE = re.compile(
    r'"""[\s\S]*?"""|"(?!"")[^"\n]*"|(?P<comment>#[^\n]*)|(?P<open>[(\[])|(?P<close>[)\]])'
    r'|(?P<quote>"""|")'
)
_CLOSER = {"(": ")", "[": "]"}


class Scan(NamedTuple):
    """`fault` is the first string or bracket without its other half; the parser fails on it too,
    later and in words that hide the cause."""

    comments: tuple[ast.Comment, ...]
    fault: Diagnostic | None


def scan(source: Source) -> Scan:
    """Find comments and unmatched delimiters; nothing is raised."""
    comments: list[ast.Comment] = []
    opened: list[Span] = []
    fault: Diagnostic | None = None
    for match in _PIECE.finditer(source.text):
        kind = match.lastgroup
        if kind is None:
            continue
        span = Span(*match.span())
        if kind == "comment":
            comments.append(_comment(source.text, span))
            continue
        if kind == "open":
            opened.append(span)
            if len(opened) > MAX_DEPTH:
                fault = _too_deep(source, span)
        elif kind == "quote":
            fault = _open_string(source, span)
        else:
            fault = _closing(source, span, opened.pop() if opened else None)
        if fault is not None:
            return Scan(tuple(comments), fault)
    if opened:
        bracket = source.text[opened[-1].start]
        fault = _fault(source, f"`{bracket}` is never closed", opened[-1])
    return Scan(tuple(comments), fault)


def _comment(text: str, span: Span) -> ast.Comment:
    line_start = text.rfind("\n", 0, span.start) + 1
    alone = not text[line_start : span.start].strip()
    words = text[span.start : span.end].rstrip()
    return ast.Comment(Span(span.start, span.start + len(words)), words, alone)


def _closing(source: Source, span: Span, opener: Span | None) -> Diagnostic | None:
    closer = source.text[span.start]
    if opener is None:
        return _fault(source, f"`{closer}` closes nothing", span)
    bracket = source.text[opener.start]
    if _CLOSER[bracket] == closer:
        return None
    labels = (Label(source, span), Label(source, opener, "opened here"))
    message = f"`{bracket}` is closed by `{closer}`"
    return Diagnostic("CL001", message, labels, help=f"`{bracket}` needs `{_CLOSER[bracket]}`")


def _open_string(source: Source, span: Span) -> Diagnostic:
    quote = source.text[span.start : span.end]
    end = source.text.find("\n", span.end)
    span = Span(span.start, len(source.text) if end < 0 else end)
    text = f"close it with `{quote}`"
    if quote == '"':
        text += ' on the same line; text over several lines stands in `"""`'
    return _fault(source, "a string that is not closed", span, text)


def _too_deep(source: Source, span: Span) -> Diagnostic:
    message = f"brackets are nested more than {MAX_DEPTH} deep"
    return Diagnostic("CL002", message, (Label(source, span),))


def _fault(source: Source, message: str, span: Span, text: str | None = None) -> Diagnostic:
    return Diagnostic("CL001", message, (Label(source, span),), help=text)
