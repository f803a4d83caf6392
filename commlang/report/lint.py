"""What `commlang lint` prints: excerpts and a summary for people, one JSON object for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.diagnostics import Severity
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from commlang.diagnostics import Diagnostic, Label
    from commlang.verify import Outcome
    from commlang.verify.sweep import Sweep

VERSION = 1
"""Of the JSON form; it grows when a field changes its meaning or goes."""

_BOLD, _RED, _YELLOW, _BLUE, _CYAN, _RESET = (
    f"\033[{code}m" for code in ("1", "1;31", "1;33", "34", "36", "0")
)

_TONES = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.ADVICE: _CYAN}


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal whose user did not object (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def render_text(outcome: Outcome, *, colour: bool = False) -> str:
    """Findings, notes and a summary line, for a terminal; ends without a newline."""
    parts = [render_finding(found, colour=colour) + "\n" for found in outcome.findings]
    parts += [f"note: {note}" for note in outcome.notes]
    return "\n".join([*parts, summary(outcome)])


def render_finding(found: Diagnostic, *, colour: bool = False) -> str:
    """A finding as text; with colour, its parts in ANSI colours."""
    text = found.render()
    if not colour:
        return text
    head, *lines = text.split("\n")
    tone = _TONES[found.severity]
    mark, colon, message = head.partition(":")
    painted = [f"{tone}{mark}{_RESET}{_BOLD}{colon}{message}{_RESET}"]
    return "\n".join([*painted, *(_paint(line, tone) for line in lines)])


def summary(outcome: Outcome) -> str:
    """`2 errors in 1 file (3 patterns checked)`, or what was checked without finding anything."""
    patterns = _count(outcome.patterns, "pattern")
    ignored = f", {outcome.ignored:,} ignored" if outcome.ignored else ""
    if not outcome.findings:
        return f"checked {patterns} in {_count(outcome.files, 'file')}: no findings{ignored}"
    counts = {severity: outcome.count(severity) for severity in Severity}
    told = _listed([_told(n, severity) for severity, n in counts.items() if n])
    paths = {found.labels[0].source.path for found in outcome.findings if found.labels}
    hint = f"; see `commlang rule {outcome.findings[0].code}`"
    return f"{told} in {_count(max(1, len(paths)), 'file')} ({patterns} checked{ignored}){hint}"


def lint_json(outcome: Outcome) -> dict[str, Any]:
    """The outcome as JSON data.

    `findings` is a list, each with `code`, `severity`, `message`, `path`, `line`, `column` and
    `end` (`line` and `column` after the last character; columns count characters from 1; all are
    None for a finding without a place), `labels` (all its places, the first one included),
    `notes`, `help`, and `extra`: `world` and `preset` where it was found, a deadlock's `cycle`.
    Of many worlds, `extra` has all `worlds` of a finding and those `checked`, and the outcome has
    `worlds`: for each pattern those `checked`, `not_applicable` and `undecided`, and whether
    point-to-point `matching` is `proven` for all worlds, `open`, or there are `no messages`.
    """
    return {
        "version": VERSION,
        "commlang": __version__,
        "summary": {
            "files": outcome.files,
            "patterns": outcome.patterns,
            "errors": outcome.count(Severity.ERROR),
            "warnings": outcome.count(Severity.WARNING),
            "advice": outcome.count(Severity.ADVICE),
            "ignored": outcome.ignored,
        },
        "findings": [finding_json(found) for found in outcome.findings],
        "notes": outcome.notes,
        **({"worlds": [_sweep(swept) for swept in outcome.sweeps]} if outcome.sweeps else {}),
    }


def _sweep(swept: Sweep) -> dict[str, Any]:
    refused = [{"worlds": list(r.worlds), "reason": r.reason} for r in swept.refused]
    return {
        "path": swept.definition.module.source.path,
        "pattern": swept.definition.node.name,
        "checked": list(swept.checked),
        "not_applicable": refused,
        "undecided": list(swept.undecided),
        "matching": str(swept.matching),
    }


def finding_json(found: Diagnostic) -> dict[str, Any]:
    """A finding as JSON data, as `lint_json` tells."""
    nowhere = {"path": None, "line": None, "column": None, "end": None}
    return {
        "code": found.code,
        "severity": str(found.severity),
        "message": found.message,
        **(_place(found.labels[0]) if found.labels else nowhere),
        "labels": [{**_place(label), "text": label.text} for label in found.labels],
        "notes": list(found.notes),
        "help": found.help,
        "extra": found.extra,
    }


def _place(label: Label) -> dict[str, Any]:
    line, column = label.source.position(label.span.start)
    end_line, end_column = label.source.position(label.span.end)
    end = {"line": end_line, "column": end_column}
    return {"path": label.source.path, "line": line, "column": column, "end": end}


def _paint(line: str, tone: str) -> str:
    """Colour a line of an excerpt by the mark after its gutter."""
    body = line.lstrip("0123456789 ")
    gutter = line[: len(line) - len(body)]
    if body.startswith("--> "):
        return f"{gutter}{_BLUE}-->{_RESET}{body[3:]}"
    if body.startswith("| ") and not gutter.strip():
        return f"{gutter}{_BLUE}|{_RESET}{tone}{body[1:]}{_RESET}"
    if body.startswith("|"):
        return f"{_BLUE}{gutter}|{_RESET}{body[1:]}"
    if body.startswith("= help:"):
        return f"{gutter}{_CYAN}= help:{_RESET}{body[7:]}"
    return line


def _told(number: int, severity: Severity) -> str:
    if severity is Severity.ADVICE:
        return f"{_count(number, 'piece')} of advice"
    return _count(number, str(severity))


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
