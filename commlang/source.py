"""Source text and the spans that point into it."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from commlang.errors import UsageError

MAX_BYTES = 4 << 20
"""Largest source file read: patterns are written by people, so more is a mistake."""


class Span(NamedTuple):
    """Half-open range of character offsets in one source."""

    start: int
    end: int


class Source:
    """The text of one `.cl` file, with offsets turned into lines and columns."""

    def __init__(self, text: str, path: str = "<text>") -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.path = path

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Read a UTF-8 file; raises UsageError for what cannot be a pattern file."""
        try:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
        except ValueError as error:
            raise UsageError(f"cannot read {path!r}: {error}") from None
        return cls.decode(data, str(path))

    @classmethod
    def decode(cls, data: bytes, path: str) -> Source:
        """Decode bytes as UTF-8 text; raises UsageError for binary or oversized input."""
        if len(data) > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES >> 20} MiB, more than is read")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise UsageError(
                f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8; write it as UTF-8 text"
            ) from None
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            raise UsageError(f"{path}:{line}: a NUL byte; this is no text")
        return cls(text, path)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line counted from 1, without its newline."""
        start = self._starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]

    def where(self, span: Span) -> str:
        """`path:line:column` of the start of a span."""
        line, column = self.position(span.start)
        return f"{self.path}:{line}:{column}"

    def excerpt(self, span: Span) -> str:
        """The text of a span, cut at the end of its first line."""
        return self.text[span.start : span.end].split("\n", 1)[0]
