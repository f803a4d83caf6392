"""Where blanks stand between the tokens of a line, read off the syntax tree.

The same sign is spaced by what it means: `-` as an operation or a sign, `=` as a binding or a
keyword argument, `(` after a callee or a keyword, `:` of a slice. The tree tells which.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING

from commlang.records import record
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.syntax.tokens import Token

END = 1 << 62
"""An offset behind every text."""


@record
class Spacing:
    """Offsets of the signs that hug a neighbour."""

    openers: set[int] = field(default_factory=set[int])
    """Brackets that follow what they call or index."""
    prefixes: set[int] = field(default_factory=set[int])
    """Signs of a single operand."""
    tight: set[int] = field(default_factory=set[int])
    """Signs with a blank on neither side."""
    loose: set[int] = field(default_factory=set[int])
    """Colons of slices with a blank on both sides."""

    def gap(self, before: Token, after: Token) -> str:
        """What stands between two tokens of a line."""
        return " " if self._apart(before, after) else ""

    def join(self, tokens: Sequence[Token]) -> str:
        """Tokens as one line of text."""
        parts = [tokens[0].text] if tokens else []
        for before, after in pairwise(tokens):
            parts += (self.gap(before, after), after.text)
        return "".join(parts)

    def columns(self, tokens: Sequence[Token]) -> list[int]:
        """Where each of the joined tokens begins, and the width of all at the end."""
        columns = [0]
        for before, after in pairwise(tokens):
            columns.append(columns[-1] + len(before.text) + len(self.gap(before, after)))
        return [*columns, columns[-1] + len(tokens[-1].text)]

    def _apart(self, before: Token, after: Token) -> bool:
        if before.kind == "sign":
            if before.text in "([" or before.start in self.prefixes or before.start in self.tight:
                return False
            if before.text[0] == ".":
                return False
        if after.kind == "sign":
            return self._apart_from_sign(before, after)
        return True

    def _apart_from_sign(self, before: Token, after: Token) -> bool:
        if after.text in ")],":
            return False
        if after.text == ":":
            return before.text == "," or (after.start in self.loose and before.text != ":")
        if after.text[0] == ".":
            return before.text == "from"
        return after.start not in self.openers and after.start not in self.tight


def spacing(module: ast.Module, tokens: Sequence[Token]) -> Spacing:
    """The spacing of all tokens of a module."""
    found = Spacing()
    signs = {token.start: token.text for token in tokens if token.kind == "sign"}
    order = sorted(signs)
    for node in walk(module):
        _mark(node, found, order, signs)
    return found


def _mark(node: ast.Node, found: Spacing, order: list[int], signs: dict[int, str]) -> None:
    match node:
        case ast.Call(func=ast.Node(span=span)) | ast.Index(base=ast.Node(span=span)):
            found.openers.add(_next(order, span.end))
        case ast.Pattern(target=ast.Target(span=span)) | ast.Extern(target=ast.Target(span=span)):
            found.openers.add(_next(order, span.end))
        case ast.LetFunction(target=ast.Target(span=span)):
            found.openers.add(_next(order, span.end))
        case ast.TypeRef(span=span, shape=tuple()) | ast.Wait(span=span):
            found.openers.add(_next(order, span.start))
        case ast.Unary(span=span, op=op) if op != "not":
            found.prefixes.add(span.start)
        case ast.Binary(op="**", left=left, right=right) if _simple(left) and _simple(right):
            found.tight.add(_next(order, left.span.end))
        case ast.Slice():
            _mark_slice(node, found, order, signs)
        case _:
            pass
    if isinstance(node, ast.Call | ast.Transfer):
        found.tight.update(_next(order, keyword.span.start) for keyword in node.keywords)


def _mark_slice(node: ast.Slice, found: Spacing, order: list[int], signs: dict[int, str]) -> None:
    """As Black has it: blanks around the colons if an operand is more than a name or number."""
    first = _next(order, node.low.span.end if node.low else node.span.start)
    second = _next(order, node.high.span.end if node.high else first + 1)
    operands = (node.low, node.high, node.step)
    kind = found.tight if all(x is None or _simple(x) for x in operands) else found.loose
    kind.add(first)
    if second < node.span.end and signs[second] == ":":
        kind.add(second)


def _simple(node: ast.Expr) -> bool:
    if isinstance(node, ast.Unary) and node.op != "not":
        node = node.operand
    return isinstance(node, ast.Name | ast.Number)


def _next(order: list[int], offset: int) -> int:
    """The first sign at or after an offset."""
    place = bisect_left(order, offset)
    return order[place] if place < len(order) else END
