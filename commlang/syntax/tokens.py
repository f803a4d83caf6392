"""The text as the formatter sees it: tokens, and the lines of code and comment they make."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

TAB = 8

_TOKEN = re.compile(
    r'(?P<string>"""[\s\S]*?"""|"[^"\n]*")|(?P<comment>#[^\n]*)|(?P<newline>\n)|(?P<blank>[ \t]+)'
    r"|(?P<word>[A-Za-z_]\w*|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?[A-Za-z]*)"
    r"|(?P<sign>->|\*\*|//|<<|>>|[=!<>]=|\.+|.)"
)


class Token(NamedTuple):
    """A word (a name, keyword or number), a string, a sign, a comment or a newline."""

    kind: Literal["word", "string", "sign", "comment", "newline"]
    text: str
    start: int


@dataclass(slots=True)
class Line:
    """A statement or a clause head, or a comment that stands alone (then `tokens` is empty).

    `tokens` keeps newlines and comments inside brackets; `comment` is the one at the end of the
    line. `level` counts the blocks around it, `blank` tells that an empty line stands before.
    """

    tokens: list[Token]
    indent: int
    level: int = 0
    comment: Token | None = None
    blank: bool = False

    @property
    def opens(self) -> bool:
        """Whether a block follows."""
        return bool(self.tokens) and self.tokens[-1].text == ":"


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of a text that parses; blanks are left out."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind != "blank":
            yield Token(kind, match.group(), match.start())  # pyright: ignore[reportArgumentType]


def lines(text: str) -> list[Line]:
    """The logical lines, with levels: bracketed text over several lines is one line."""
    found = list(_split(text))
    _set_levels(found)
    return found


def _split(text: str) -> Iterator[Line]:
    current: Line | None = None
    depth, blank = 0, False
    for token in tokenize(text):
        if token.kind == "newline" and depth == 0:
            if current is None:
                blank = True
            else:
                yield current
                current, blank = None, False
            continue
        if current is None:
            current = Line([], column_of(text, token.start), blank=blank)
        if token.kind == "comment" and depth == 0:
            current.comment = token
            continue
        if token.kind == "sign":
            depth += (token.text in "([") - (token.text in ")]")
        current.tokens.append(token)
    if current is not None:
        yield current


def column_of(text: str, offset: int) -> int:
    """The column of an offset, from 0, with a tab as wide as the widest that it stands for."""
    before = text[text.rfind("\n", 0, offset) + 1 : offset]
    return len(before) + (TAB - 1) * before.count("\t")


def _set_levels(found: list[Line]) -> None:
    """Give each line its level; a comment at the end of a block goes by its own indentation."""
    blocks = [0]
    comments: list[Line] = []
    for line in found:
        if not line.tokens:
            comments.append(line)
            continue
        outer = list(blocks)
        while blocks[-1] > line.indent:
            blocks.pop()
        if line.indent > blocks[-1]:
            blocks.append(line.indent)
        line.level = len(blocks) - 1
        _place(comments, outer, line.level)
        comments = []
    _place(comments, blocks, 0)


def _place(comments: list[Line], open_blocks: list[int], level: int) -> None:
    for comment in comments:
        deeper = sum(width <= comment.indent for width in open_blocks) - 1
        comment.level = max(level, deeper)
