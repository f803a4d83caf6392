"""A statement's tokens as lines of text: one if it fits, else broken inside its brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commlang.syntax.tokens import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.syntax.spacing import Spacing

WIDTH = 100
"""Longest line of code; comments and what has no bracket to break may be longer."""
INDENT = " " * 4
_WORTH = 20
"""Shortest bracket content that is worth lines of its own: breaking less reads worse than a long
line."""

_BREAKS = (("for", "if", "else"), ("or",), ("and",), ("==", "!=", "<=", ">=", "<", ">"), ("+", "-"))
"""Where text without commas is broken, loosest first; the sign begins the new line."""


class _Bracket(NamedTuple):
    """Indices of the two brackets."""

    start: int
    end: int


def layout(tokens: Sequence[Token], level: int, spacing: Spacing) -> list[str]:
    """The lines of a statement that holds no comment inside."""
    return list(_lines(_joined(tokens), level, spacing))


def keep(tokens: Sequence[Token], level: int, spacing: Spacing) -> list[tuple[str, Token | None]]:
    """The lines of a statement with comments inside: broken as written, indented by brackets."""
    lines: list[tuple[str, Token | None]] = []
    depth = 0
    for row in _rows(tokens):
        comment = row.pop() if row[-1].kind == "comment" else None
        closing = next((i for i, t in enumerate(row) if t.text not in ")]"), len(row))
        indent = INDENT * (level + depth - closing)
        lines.append((indent + spacing.join(row) if row else indent, comment))
        depth += sum(_step(token) for token in row)
    return lines


def _rows(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    row: list[Token] = []
    for token in tokens:
        if token.kind != "newline":
            row.append(token)
        elif row:
            yield row
            row = []
    if row:
        yield row


def _joined(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without newlines, and without commas before a closing bracket."""
    found = [token for token in tokens if token.kind != "newline"]
    return [
        token
        for token, after in zip(found, [*found[1:], None], strict=True)
        if token.text != "," or after is None or after.text not in ")]"
    ]


def _lines(tokens: Sequence[Token], level: int, spacing: Spacing) -> Iterator[str]:
    stack = [(tokens, level)]
    while stack:
        tokens, level = stack.pop()
        text = INDENT * level + spacing.join(tokens)
        fits = len(text) <= WIDTH or "\n" in text
        bracket = None if fits else _choose(tokens, level, spacing)
        if bracket is None:
            yield text
            continue
        stack.append((tokens[bracket.end :], level))
        inside = _content(tokens[bracket.start + 1 : bracket.end], level + 1, spacing)
        stack += [(part, level + 1) for part in reversed(inside)]
        stack.append((tokens[: bracket.start + 1], level))


def _content(tokens: Sequence[Token], level: int, spacing: Spacing) -> Sequence[Sequence[Token]]:
    """The inside of a broken bracket: an item per line, each with its comma; text that holds no
    items stands on one line if it fits, else on a line per clause or operand."""
    items = _parts(tokens, (",",))
    if len(items) > 1 and len(_parts(tokens, ("for",), spacing)) == 1:
        return [*items[:-1], [*items[-1], Token("sign", ",", items[-1][-1].start)]]
    if len(INDENT * level + spacing.join(tokens)) > WIDTH:
        for signs in _BREAKS:
            parts = _parts(tokens, signs, spacing)
            if len(parts) > 1:
                return parts
    return [tokens]


def _parts(
    tokens: Sequence[Token], signs: tuple[str, ...], spacing: Spacing | None = None
) -> list[list[Token]]:
    """The tokens cut after commas, or before other signs, outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += _step(token)
        here = depth == 0 and token.text in signs and token.kind != "string"
        if here and spacing is not None and parts[-1] and token.start not in spacing.prefixes:
            parts.append([])
        parts[-1].append(token)
        if here and spacing is None:
            parts.append([])
    return parts if parts[-1] else parts[:-1]


def _choose(tokens: Sequence[Token], level: int, spacing: Spacing) -> _Bracket | None:
    """The bracket to break: the longest whose break leaves the rest short enough, else the
    longest at all, None if no break would help."""
    room = WIDTH - len(INDENT) * level
    columns = spacing.columns(tokens)
    best: tuple[bool, int, _Bracket] | None = None
    for pair in _brackets(tokens):
        start, end = columns[pair.start] + 1, columns[pair.end]
        fits = start <= room and columns[-1] - end <= room
        better = best is None or (fits, end - start) > best[:2]
        if better and end - start >= _WORTH:
            best = fits, end - start, pair
    return best[2] if best else None


def _brackets(tokens: Sequence[Token]) -> Iterator[_Bracket]:
    """The outermost pairs of brackets that both stand among the tokens."""
    opened: list[int] = []
    pairs: list[_Bracket] = []
    for place, token in enumerate(tokens):
        step = _step(token)
        if step > 0:
            opened.append(place)
        elif step < 0 and opened:
            pairs.append(_Bracket(opened.pop(), place))
    last = -1
    for pair in sorted(pairs):
        if pair.start > last:
            yield pair
            last = pair.end


def _step(token: Token) -> int:
    if token.kind != "sign":
        return 0
    return (token.text in "([") - (token.text in ")]")
