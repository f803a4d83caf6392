"""What a parser's refusal means, in the reader's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from commlang.diagnostics import Diagnostic, Label, did_you_mean
from commlang.source import Span

if TYPE_CHECKING:
    from commlang.source import Source

_WORDS = {
    "_NL": "end of line",
    "_INDENT": "an indented block",
    "_DEDENT": "end of the block",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "AT": "`@`",
    "__ANON_0": "`->`",
    "$END": "end of file",
}

_STATEMENTS = (
    "pattern extern from require ensure preset mesh group let temp for if elif else parallel "
    "sequence pass wait assume cost"
).split()

_HINTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"\s*(while)\b", "there is no `while`; a loop is `for NAME in range(…):`"),
        (r"\s*(def|class)\b", "a file holds `pattern NAME(…):` and `extern NAME(…)`"),
        (r"\s*import\b", "write `from FILE import NAME`"),
        (r"\s*return\b", "a pattern returns nothing; it writes to its tensor parameters"),
        (r"[^\"#]*'", 'strings stand in double quotes: `"…"`'),
        (r".*(&&|\|\|)", "write `and` and `or`"),
        (r".*![^=]", "write `not`"),
        (r".*(\+=|-=|\*=)", "accumulate with an arrow: `value -> target, op=sum`"),
        (r"\s*let\s+\w+\s*=\s*async\b", "a handle is bound without `let`: `work = async …`"),
        (
            r"\s*[A-Za-z_]\w*\s*=(?!=)(?!\s*async\b)",
            "bind a name with `let NAME = …`; copy data with `value -> target`",
        ),
        (
            r"\s*(for|if|elif|else|parallel|sequence|pattern)\b[^#:]*(#.*)?$",
            "end the line with `:`",
        ),
    )
)


def explain(source: Source, error: Exception) -> Diagnostic:
    """The diagnostic of a Lark error."""
    span, found, expected = _place(source, error)
    line = source.line(source.position(span.start)[0])
    words = sorted(_WORDS[name] for name in expected if name in _WORDS)
    notes = (f"expected {' or '.join(words)}",) if 0 < len(words) <= 4 else ()
    label = Label(source, span)
    return Diagnostic("CL001", found, (label,), notes, _hint(line))


def _hint(line: str) -> str | None:
    for pattern, hint in _HINTS:
        if pattern.match(line):
            return hint
    match = re.match(r"\s*([A-Za-z_]\w*)\s+[A-Za-z_]", line)
    if match and match.group(1) not in _STATEMENTS:
        return did_you_mean(match.group(1), _STATEMENTS)
    return None


def _place(source: Source, error: Exception) -> tuple[Span, str, set[str]]:
    end = len(source.text)
    if isinstance(error, UnexpectedToken):
        token = error.token
        expected = set(error.accepts or error.expected)
        if not isinstance(token, Token) or token.type in ("$END", "_DEDENT"):
            return _last(source, token), "unexpected end of the block", expected
        start = min(token.start_pos or 0, end)
        if token.type in ("_NL", "_INDENT"):
            what = "unexpected end of line" if token.type == "_NL" else "unexpected indentation"
            return Span(start, start + 1), what, expected
        return Span(start, start + len(token)), f"unexpected `{token}`", expected
    if isinstance(error, UnexpectedCharacters):
        start = min(error.pos_in_stream, end)
        char = source.text[start : start + 1]
        if char == '"':
            return Span(start, start + 1), "a string that is not closed", set()
        expected = set[str](error.allowed or ())
        match = re.compile(r"\w+").match(source.text, start)
        word = match.group() if match else char
        shown = word if word.isprintable() else repr(word)
        return Span(start, start + len(word)), f"unexpected `{shown}`", expected
    if isinstance(error, UnexpectedEOF):
        return Span(end, end), "unexpected end of file", set(error.expected)
    return _dedent(source, error)


def _last(source: Source, token: object) -> Span:
    start = getattr(token, "start_pos", None)
    text = source.text if start is None else source.text[:start]
    start = len(text.rstrip())
    return Span(max(0, start - 1), start)


def _dedent(source: Source, error: Exception) -> tuple[Span, str, set[str]]:
    """Find the line whose indentation matches no open block (Lark tells only its width)."""
    levels = [0]
    offset = 0
    for line in source.text.split("\n"):
        body = line.strip(" \t")
        if body and not body.startswith("#"):
            width = len(line[: len(line) - len(line.lstrip())].expandtabs(8))
            while levels and levels[-1] > width:
                levels.pop()
            if not levels or levels[-1] < width:
                if _indent_of(error) == width and levels and offset:
                    return Span(offset, offset + len(line)), _DEDENT, set()
                levels.append(width)
        offset += len(line) + 1
    return Span(0, 1), _DEDENT, set()


_DEDENT = "this line's indentation matches no block above it"


def _indent_of(error: Exception) -> int:
    match = re.search(r"dedent to column (\d+)", str(error))
    return int(match.group(1)) if match else -1
