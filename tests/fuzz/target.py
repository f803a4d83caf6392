"""What the fuzzed inputs go through: all of the front end, as `commlang lint` and `fmt` run it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from commlang.errors import PatternError, UsageError
from commlang.source import Source
from commlang.syntax.formatter import format_source
from commlang.verify.cases import Choice
from commlang.verify.lint import Options, lint_source
from tests.fuzz.inputs import ROOT

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic

PATH = str(ROOT / "patterns" / "point_to_point" / "fuzzed.cl")
"""Beside files that can be imported."""
_MAX_EVENTS = 20_000
OPTIONS = tuple(Options(choice=Choice(world=world), max_events=_MAX_EVENTS) for world in (2, 3))


class Answer(StrEnum):
    """What became of an input."""

    NO_TEXT = "no text"
    NO_SYNTAX = "syntax errors"
    STATIC = "static findings"
    FINDINGS = "findings in a world"
    CLEAN = "clean"


def swallow(data: bytes) -> Answer:
    """Read, check, expand, judge and format an input; all else that is raised is our fault."""
    try:
        source = Source.decode(data, PATH)
    except UsageError:
        return Answer.NO_TEXT
    try:
        once = format_source(source)
    except PatternError as error:
        _read(error.diagnostics, source)
        return Answer.NO_SYNTAX
    assert format_source(Source(once, PATH)) == once, "formatting twice is not formatting once"
    answer = Answer.CLEAN
    for options in OPTIONS:
        outcome = lint_source(source, None, options)
        _read(outcome.findings, source)
        if outcome.findings:
            answer = Answer.FINDINGS if outcome.patterns else Answer.STATIC
    return answer


def _read(findings: list[Diagnostic] | tuple[Diagnostic, ...], source: Source) -> None:
    """Every finding can be shown, and says something about a place of the text."""
    for found in findings:
        shown = found.render()
        assert found.code.startswith("CL")
        assert found.code in shown
        assert found.message
        for label in found.labels:
            assert 0 <= label.span.start <= label.span.end <= len(label.source.text) + 1
    assert len(findings) <= 10 * (source.text.count("\n") + 10), "more findings than anyone reads"
