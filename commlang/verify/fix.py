"""Mending what is mechanical: the edits of findings, each kept only if checking again agrees."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from commlang.errors import CommlangError, PatternError
from commlang.records import record
from commlang.source import Source
from commlang.syntax.formatter import format_source
from commlang.syntax.parser import parse
from commlang.verify.lint import USUAL, Options, lint_source

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic

MOST = 100
"""Most edits of one file in one go; each costs a check of the file."""


@record
class Mended:
    """The text of a file after its fixes, and the findings that they mended."""

    text: str
    findings: tuple[Diagnostic, ...]


def mend(source: Source, pattern: str | None = None, options: Options = USUAL) -> Mended:
    """Apply the fixes of a file's findings, one after the other.

    One is left out if the text would not parse, would lose a comment, would still have the finding,
    or would have one that was not there before. What was formatted stays formatted. Files that are
    imported are left alone.
    """
    formatted = _formatted(source) == source.text
    mended: list[Diagnostic] = []
    findings = lint_source(source, pattern, options).findings
    refused: set[str] = set()
    while len(mended) < MOST:
        step = None
        for found in findings:
            if found.fix is None or found.fix.source is not source or _key(found) in refused:
                continue
            step = _step(found, findings, formatted, pattern, options)
            if step is not None:
                mended.append(found)
                break
            refused.add(_key(found))
        if step is None:
            break
        source, findings = step
    return Mended(source.text, tuple(mended))


def _step(
    found: Diagnostic,
    before: list[Diagnostic],
    formatted: bool,
    pattern: str | None,
    options: Options,
) -> tuple[Source, list[Diagnostic]] | None:
    """The source and its findings with one fix applied, None if that would not do."""
    assert found.fix is not None
    old = found.fix.source
    new = Source(found.fix.apply(), old.path)
    try:
        if formatted:
            new = Source(format_source(new), old.path)
        if _comments(new) != _comments(old):
            return None
    except (PatternError, CommlangError):
        return None
    after = lint_source(new, pattern, options).findings
    known = Counter(map(_key, before))
    known[_key(found)] -= 1
    codes = Counter(finding.code for finding in before)
    fresh = Counter(map(_key, after)) - known
    grown = Counter(finding.code for finding in after) - codes
    if grown or any(key == _key(found) for key in fresh):
        return None
    return new, after


def _key(found: Diagnostic) -> str:
    """A finding by its words and the text that it stands on, which survive a shift of lines."""
    label = found.labels[0] if found.labels else None
    text = label.source.excerpt(label.span) if label else ""
    return f"{found.code} {found.message} {text}"


def _comments(source: Source) -> Counter[str]:
    return Counter(comment.text for comment in parse(source).comments)


def _formatted(source: Source) -> str | None:
    try:
        return format_source(source)
    except (PatternError, CommlangError):
        return None
