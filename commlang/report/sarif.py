"""Findings as SARIF 2.1.0, which code scanning services and editors read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from commlang.checks.pages import pages
from commlang.diagnostics import Severity
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.checks.pages import Page
    from commlang.diagnostics import Diagnostic, Fix, Label
    from commlang.source import Source, Span
    from commlang.verify import Outcome

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(outcome: Outcome) -> dict[str, Any]:
    """The outcome as a SARIF log of one run; columns count Unicode code points.

    A rule is listed if there is a finding of it, with its page as help.
    """
    codes = sorted({found.code for found in outcome.findings})
    rules = [_rule(pages()[code]) for code in codes]
    driver = {
        "name": "commlang",
        "semanticVersion": __version__,
        "rules": rules,
    }
    notes = [{"level": "note", "message": {"text": note}} for note in outcome.notes]
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "results": [_result(found, codes) for found in outcome.findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(page: Page) -> dict[str, Any]:
    rule = page.rule
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.text.partition("\n\n")[0].replace("\n", " ")},
        "help": {"text": f"{page.title}\n\n{page.text}", "markdown": page.text},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(found: Diagnostic, codes: Sequence[str]) -> dict[str, Any]:
    text = [found.message, *found.notes, *([f"help: {found.help}"] if found.help else [])]
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": codes.index(found.code),
        "level": _LEVELS[found.severity],
        "message": {"text": "\n".join(text)},
    }
    if found.labels:
        first, *others = found.labels
        result["locations"] = [_location(first)]
        if others:
            result["relatedLocations"] = [
                {"id": number, **_location(label)} for number, label in enumerate(others)
            ]
    if found.fix is not None:
        result["fixes"] = [_fix(found.fix)]
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(fix.source, edit.span), "insertedContent": {"text": edit.text}}
        for edit in fix.edits
    ]
    change = {
        "artifactLocation": {"uri": _uri(fix.source.path)},
        "replacements": replacements,
    }
    return {
        "description": {"text": "what `commlang lint --fix` would write"},
        "artifactChanges": [change],
    }


def _location(label: Label) -> dict[str, Any]:
    region = _region(label.source, label.span)
    place = {"artifactLocation": {"uri": _uri(label.source.path)}, "region": region}
    message = {"message": {"text": label.text}} if label.text else {}
    return {"physicalLocation": place, **message}


def _region(source: Source, span: Span) -> dict[str, int]:
    line, column = source.position(span.start)
    end_line, end_column = source.position(span.end)
    return {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def _uri(path: str) -> str:
    """Relative to where the command ran, as a viewer wants it, if the path is."""
    return Path(path).as_uri() if Path(path).is_absolute() else quote(Path(path).as_posix())
