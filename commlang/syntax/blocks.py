"""Blocks by indentation: the tokens that Lark's parser sees at the start of a line."""

# Lark declares plain class attributes as properties, and its tokens without types.
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false
# pyright: reportUnknownVariableType=false, reportUnnecessaryComparison=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lark import Token
from lark.indenter import Indenter

if TYPE_CHECKING:
    from collections.abc import Iterator


UNEXPECTED = "unexpected indentation"
UNEXPECTED_HINT = "only a line that ends with `:` opens a block"


class BlockError(Exception):
    """A line that fits no block; `start` is the offset of its first character."""

    def __init__(self, message: str, hint: str, start: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.start = start


class Blocks(Indenter):
    """Lark's indenter, but a block is known by the text of its indentation, not by its width.

    A tab has no width that all editors agree on, so lines of one block must begin alike.
    """

    NL_type = "_NL"
    OPEN_PAREN_types = ["LPAR", "LSQB"]  # noqa: RUF012 (Lark's own declaration)
    CLOSE_PAREN_types = ["RPAR", "RSQB"]  # noqa: RUF012
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens with `_INDENT` and `_DEDENT` put in; raises BlockError."""
        self._open = [""]
        return super().process(_not_indented(stream))

    def handle_NL(self, token: Token) -> Iterator[Token]:  # noqa: N802 (Lark's name)
        """The tokens for a newline and the indentation after it."""
        if self.paren_level > 0:
            return
        yield token
        indent = token.rsplit("\n", 1)[1]
        if indent == self._open[-1]:
            return
        if indent.startswith(self._open[-1]):
            self._push(indent)
            yield Token.new_borrow_pos(self.INDENT_type, indent, token)
            return
        closed = ""
        while not indent.startswith(self._open[-1]):
            closed += self._pop()
            yield Token.new_borrow_pos(self.DEDENT_type, indent, token)
        if indent != self._open[-1]:
            raise _fault(indent, closed, token)

    def _push(self, indent: str) -> None:
        self._open.append(indent)
        self.indent_level.append(len(indent))  # Lark closes as many blocks at the end of the text

    def _pop(self) -> str:
        self.indent_level.pop()
        return self._open.pop()


def _not_indented(stream: Iterator[Token]) -> Iterator[Token]:
    """The tokens; raises BlockError if the text begins inside a block."""
    for first in stream:
        if first.type != Blocks.NL_type and first.start_pos:
            raise BlockError(UNEXPECTED, UNEXPECTED_HINT, first.start_pos)
        yield first
        break
    yield from stream


def _fault(indent: str, closed: str, token: Any) -> BlockError:
    start = token.end_pos
    if "\t" in indent + closed and " " in indent + closed:
        return BlockError(
            "tabs and spaces are mixed in the indentation", "indent with spaces only", start
        )
    return BlockError(
        "this line's indentation matches no block above it",
        "lines of one block begin in the same column",
        start,
    )
