"""Comments that silence a finding: `# commlang: ignore[CL231] reason`, at the end of its line."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from commlang.checks.hygiene import invalid_ignore, unused_ignore
from commlang.records import record
from commlang.source import Span
from commlang.syntax.tokens import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.selection import Selection
    from commlang.diagnostics import Diagnostic
    from commlang.source import Source
    from commlang.syntax.tokens import Line, Token

_MEANT = re.compile(r"commlang:\s*ignore\b\s*(.*)")
_WRITTEN = re.compile(r"\[\s*(CL\d{3}(?:\s*,\s*CL\d{3})*)\s*\]\s+\S")
_DEPENDING = ("CL25", "CL26")
"""Rules whose findings come and go with `--backend`: without one they may have nothing to say."""


@record
class Ignore:
    """A comment, what is wrong with it (or None), and the statement that it speaks of."""

    comment: Span
    codes: tuple[str, ...]
    fault: str | None
    statement: Span

    def covers(self, code: str, start: int) -> bool:
        """Whether it silences a finding of that code which stands there."""
        return code in self.codes and self.statement.start <= start < self.statement.end


class Ignores:
    """The comments of all sources that have findings, and which of them were of use."""

    def __init__(self) -> None:
        self._known: dict[Source, tuple[Ignore, ...]] = {}
        self._used: set[tuple[str, int, str]] = set()

    def of(self, source: Source) -> tuple[Ignore, ...]:
        """The comments of a source that parses."""
        if source not in self._known:
            found = tuple(_ignores(source)) if "commlang:" in source.text else ()
            self._known[source] = found
        return self._known[source]

    def silence(self, found: Diagnostic) -> bool:
        """Whether a comment silences a finding, which is noted."""
        if not found.labels:
            return False
        source, start = found.labels[0].source, found.labels[0].span.start
        for ignore in self.of(source):
            if ignore.covers(found.code, start):
                self._used.add((_path(source), ignore.comment.start, found.code))
                return True
        return False

    def invalid(self, source: Source) -> Iterator[Diagnostic]:
        """A finding for each comment of a source that silences nothing as it is written."""
        for ignore in self.of(source):
            if ignore.fault:
                yield invalid_ignore.report(source, ignore.comment, ignore.fault)

    def unused(self, source: Source, selection: Selection) -> Iterator[Diagnostic]:
        """A finding for each comment of a source with codes that were asked for and silenced none.

        What is found on some backends only may be absent, and the comment needed all the same.
        """
        for ignore in self.of(source):
            idle = [
                code
                for code in ignore.codes
                if (_path(source), ignore.comment.start, code) not in self._used
                and not code.startswith(_DEPENDING)
                and selection.wants(code)
            ]
            if idle:
                yield unused_ignore.report(source, ignore.comment, idle)


def _path(source: Source) -> str:
    return os.path.abspath(source.path)  # noqa: PTH100 (one file may be met by several paths)


def _ignores(source: Source) -> Iterator[Ignore]:
    for line in lines(source.text):
        inside = [token for token in line.tokens if token.kind == "comment"]
        for token in [*inside, *([line.comment] if line.comment else [])]:
            match = _MEANT.search(token.text)
            if match is not None:
                yield _ignore(line, token, match[1])


def _ignore(line: Line, token: Token, rest: str) -> Ignore:
    comment = Span(token.start, token.start + len(token.text.rstrip()))
    if not line.tokens:
        fault = "it stands on a line of its own; put it at the end of the line that it speaks of"
        return Ignore(comment, (), fault, comment)
    statement = Span(line.tokens[0].start, comment.end)
    match = _WRITTEN.match(rest)
    if match is None:
        return Ignore(comment, (), _fault(rest), statement)
    codes = tuple(code.strip() for code in match[1].split(","))
    for code in codes:
        if code < "CL2":
            fault = f"{code} cannot be ignored: what is wrong there leaves nothing to check"
            return Ignore(comment, (), fault, statement)
    return Ignore(comment, codes, None, statement)


def _fault(rest: str) -> str:
    codes = re.fullmatch(r"\[([^]]*)]\s*(.*)", rest)
    if codes is None:
        return "it names no code"
    if not codes[2] and re.fullmatch(r"\s*CL\d{3}(\s*,\s*CL\d{3})*\s*", codes[1]):
        return "it gives no reason"
    return f"`[{codes[1]}]` is no list of codes"
