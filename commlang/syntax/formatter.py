"""The one way to write a pattern file.

Four blanks per block; lines up to 100 columns, longer ones broken inside brackets, an item per
line; never more than one empty line, one around each pattern and none after a line that opens a
block. Literals, strings and brackets stay as written. Comments stay where they are: those that
stood below one another, on lines without an empty one between, stay below one another; a
statement with comments inside its brackets keeps its line breaks.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from commlang.errors import CommlangError, PatternError
from commlang.records import record
from commlang.source import Source
from commlang.syntax.layout import INDENT, keep, layout
from commlang.syntax.parser import parse
from commlang.syntax.spacing import Spacing, spacing
from commlang.syntax.tokens import Line, Token, column_of, lines
from commlang.syntax.walk import same

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlang.syntax import ast


@record
class _Row:
    """A line of output; `column` is where its comment stood in the source, -1 if it is alone."""

    text: str
    comment: str = ""
    column: int = -1
    blank: bool = False


def format_source(source: Source) -> str:
    """A pattern file's text in canonical form; an empty file stays empty.

    Raises PatternError for text that does not parse, and CommlangError, rather than give back
    text that means anything else, if the result were not the same code and comments.
    """
    module = parse(source)
    found = lines(source.text)
    _set_blanks(found)
    blanks = spacing(module, [token for line in found for token in line.tokens])
    rows = [row for line in found for row in _rows(line, blanks, source.text)]
    text = "".join(f"{line}\n" for line in _aligned(rows))
    if not _means(text, module, source.path):
        raise CommlangError(
            f"{source.path}: formatting would change the meaning of this file, so it is left as "
            "it is; this is a bug in commlang"
        )
    return text


def _means(text: str, module: ast.Module, path: str) -> bool:
    try:
        return same(module, parse(Source(text, path)))
    except PatternError:
        return False


def _set_blanks(found: Sequence[Line]) -> None:
    """Decide which lines an empty line precedes."""
    kind = ""
    for place, line in enumerate(found):
        before = found[place - 1] if place else None
        if before is None or before.opens:
            line.blank = False
        elif line.level == 0 < before.level:
            line.blank = True
        if line.tokens and line.level == 0:
            head = line.tokens[0].text
            if kind and (head == "pattern" or line.opens or head != kind):
                _set_off(found, place)
            kind = head


def _set_off(found: Sequence[Line], place: int) -> None:
    """Put an empty line before a line and the comments that stand directly above it."""
    while not found[place].blank and not found[place - 1].tokens:
        place -= 1
    found[place].blank = True


def _rows(line: Line, blanks: Spacing, text: str) -> list[_Row]:
    """The rows of a line; an empty line before it is the first row's."""
    broken: list[tuple[str, Token | None]]
    if not line.tokens:
        broken = [(INDENT * line.level, None)]
    elif any(token.kind == "comment" for token in line.tokens):
        broken = keep(line.tokens, line.level, blanks)
    else:
        broken = [(code, None) for code in layout(line.tokens, line.level, blanks)]
    broken[-1] = (broken[-1][0], line.comment)
    return [
        _row(code, comment, text, line.blank and place == 0)
        for place, (code, comment) in enumerate(broken)
    ]


def _row(code: str, comment: Token | None, text: str, blank: bool) -> _Row:
    if comment is None:
        return _Row(code, blank=blank)
    column = column_of(text, comment.start) if code.strip() else -1
    return _Row(code, comment.text.rstrip(), column, blank)


def _aligned(rows: Iterable[_Row]) -> Iterator[str]:
    paragraph: list[_Row] = []
    for row in rows:
        if row.blank:
            yield from _paragraph(paragraph)
            yield ""
            paragraph = []
        paragraph.append(row)
    yield from _paragraph(paragraph)


def _paragraph(rows: Sequence[_Row]) -> Iterator[str]:
    """The lines, with comments that stood in one column in one column again."""
    widths: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        if row.comment:
            widths[row.column] = max(widths[row.column], _width(row.text))
    for row in rows:
        if row.column < 0:
            yield row.text + row.comment
        else:
            gap = widths[row.column] - _width(row.text) + 2
            yield f"{row.text}{' ' * gap}{row.comment}"


def _width(text: str) -> int:
    return len(text) - (text.rfind("\n") + 1)
