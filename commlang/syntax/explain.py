"""What a parser's refusal means, in the reader's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from commlang.diagnostics import Diagnostic, Label
from commlang.source import Span
from commlang.syntax.blocks import UNEXPECTED, UNEXPECTED_HINT, BlockError
from commlang.syntax.hints import char_hint, expected_words, line_hint, word_hint

if TYPE_CHECKING:
    from lark import Token

    from commlang.source import Source
    from commlang.syntax.scan import Scan

_EMPTY_HINT = "indent the block by four spaces; `pass` is a statement that does nothing"


def explain(source: Source, error: Exception, found: Scan) -> Diagnostic:
    """The diagnostic of a refusal by Lark, or of the unmatched delimiter that led to it."""
    diagnostic = _refusal(source, error, found)
    fault = found.fault
    if fault and fault.labels[0].span.start <= diagnostic.labels[0].span.start:
        return fault
    return diagnostic


def _refusal(source: Source, error: Exception, found: Scan) -> Diagnostic:
    if isinstance(error, BlockError):
        return _finding(source, str(error), _rest_of_line(source, error.start), error.hint)
    if isinstance(error, UnexpectedToken):
        token: Token = cast("Any", error).token
        return _token(source, token, set(error.accepts or error.expected), found)
    if isinstance(error, UnexpectedCharacters):
        start = min(cast("Any", error).pos_in_stream, len(source.text))
        return _character(source, start, set[str](error.allowed or ()))
    raise error


def _token(source: Source, token: Token, expected: set[str], found: Scan) -> Diagnostic:
    start = len(source.text)
    if token.type != "$END":  # that one lies where the last token does
        start = min(token.start_pos or 0, start)
    last = _code_end(source, start, found)
    if expected == {"_INDENT"}:
        colon = Span(max(0, last - 1), last)
        return _finding(source, "nothing is indented under this line", colon, _EMPTY_HINT)
    match token.type:
        case "_INDENT":
            span = _rest_of_line(source, token.end_pos or 0)
            return _finding(source, UNEXPECTED, span, UNEXPECTED_HINT)
        case "_DEDENT" | "$END":
            message = "the block ends before its first statement"
            return _finding(source, message, Span(max(0, last - 1), last), _EMPTY_HINT)
        case "_NL":
            span = Span(last, last + 1)
            hint = line_hint(_line_until(source, last), expected)
            return _first_word(source, span, expected) or _finding(
                source, "unexpected end of line", span, hint, expected
            )
        case _:
            return _word_or_operator(source, Span(start, start + len(token)), expected)


def _word_or_operator(source: Source, span: Span, expected: set[str]) -> Diagnostic:
    text = source.text[span.start : span.end]
    before = _line_until(source, span.start)
    hint = char_hint(source.text, span.start, expected) or line_hint(before, expected, text)
    return _first_word(source, span, expected) or _finding(
        source, f"unexpected `{text}`", span, hint, expected
    )


def _first_word(source: Source, span: Span, expected: set[str]) -> Diagnostic | None:
    """The finding that a line begins with a word that begins no statement, if that is the cause.

    Most words can begin a call or a transfer, so the parser stops only at what follows them.
    """
    before = _line_until(source, span.start)
    line = before + source.text[span.start : span.end]
    match = re.match(r"\s*([A-Za-z_]\w*)(\s*)", line)
    if match is None:
        return None
    first = match.end(1) >= len(before.rstrip())
    if not first and "__ANON_0" not in expected:  # the parser understood the word
        return None
    after = line[match.end() :]
    direct = not after or (first and re.match(r'[\w":]', after) is not None)
    hint = word_hint(match[1], expected, direct)
    start = span.start - len(before) + match.start(1)
    place = Span(start, start + len(match[1]))
    return _finding(source, f"unexpected `{match[1]}`", place, hint) if hint else None


def _character(source: Source, start: int, allowed: set[str]) -> Diagnostic:
    char = source.text[start : start + 1]
    if char.isalnum():
        word = _word_around(source.text, start)
        hint = "a name is made of the letters a to z and A to Z, digits and `_`"
        return _finding(source, f"`{source.text[word.start : word.end]}` is no name", word, hint)
    expected = allowed - {"_NL"}  # Lark allows it everywhere
    shown = char if char.isprintable() else repr(char)
    hint = char_hint(source.text, start, expected)
    return _finding(source, f"unexpected `{shown}`", Span(start, start + 1), hint, expected)


def _finding(
    source: Source, message: str, span: Span, hint: str | None, expected: set[str] | None = None
) -> Diagnostic:
    words = expected_words(expected or set())
    notes = (f"expected {' or '.join(words)}",) if 0 < len(words) <= 4 else ()
    return Diagnostic("CL001", message, (Label(source, span),), notes, hint)


def _line_until(source: Source, offset: int) -> str:
    return source.text[source.text.rfind("\n", 0, offset) + 1 : offset]


def _rest_of_line(source: Source, start: int) -> Span:
    end = source.text.find("\n", start)
    return Span(start, len(source.text) if end < 0 else end)


def _word_around(text: str, offset: int) -> Span:
    start, end = offset, offset + 1
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return Span(start, end)


def _code_end(source: Source, offset: int, found: Scan) -> int:
    """The end of the last code before an offset: blanks and comments do not count."""
    end = len(source.text[:offset].rstrip())
    for comment in reversed(found.comments):
        start = comment.span.start
        if start < end <= comment.span.end:
            end = len(source.text[:start].rstrip())
    return end
