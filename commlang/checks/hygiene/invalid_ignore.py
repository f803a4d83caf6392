"""A comment that was meant to silence a finding (CL507).

A comment of the form `# commlang: ignore[CODE] reason` at the end of a line silences the findings
of a code on that line. One that names no code, or gives no reason, silences nothing. A reason is
asked for since a finding is a claim that something is wrong, and the next reader must be able to
judge why this one does not count.

Write the code in brackets, several separated by commas, then the reason. Errors in the text itself
(CL0 and CL1) cannot be silenced: with them there is nothing to check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Label, Severity

if TYPE_CHECKING:
    from commlang.source import Source, Span

RULE = Rule(
    "CL507",
    "invalid-ignore",
    Severity.WARNING,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x)  # commlang: ignore  # CL507
    all_reduce(x)  # commlang: ignore[206] it is fine  # CL507
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    h = async all_reduce(x)  # commlang: ignore[CL206] shows what a dropped handle does
""",
    ),
)


def report(source: Source, comment: Span, fault: str) -> Diagnostic:
    """The finding on a comment, with what is wrong with it."""
    message = f"this comment silences nothing: {fault}"
    hint = "write `# commlang: ignore[CODE] reason` at the end of the line of the finding"
    return Diagnostic(RULE.code, message, (Label(source, comment),), (), hint, RULE.severity)
