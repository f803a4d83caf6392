"""Findings as workflow commands, which GitHub shows as annotations beside the lines of a change.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.diagnostics import Severity
from commlang.report.lint import summary

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.verify import Outcome

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}


def render_github(outcome: Outcome) -> str:
    """A command for each finding, notes, and the summary, which a log shows."""
    lines = [_command(found) for found in outcome.findings]
    lines += [f"::notice::{_data(note)}" for note in outcome.notes]
    return "\n".join([*lines, summary(outcome)])


def _command(found: Diagnostic) -> str:
    properties: dict[str, object] = {"title": f"commlang {found.code}"}
    if found.labels:
        label = found.labels[0]
        line, column = label.source.position(label.span.start)
        end_line, end_column = label.source.position(label.span.end)
        properties |= {"file": label.source.path, "line": line, "endLine": end_line}
        if line == end_line:  # columns are shown for findings on one line only
            properties |= {"col": column, "endColumn": end_column}
    told = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    text = [found.message, *found.notes, *([f"help: {found.help}"] if found.help else [])]
    return f"::{_COMMANDS[found.severity]} {told}::{_data(chr(10).join(text))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
