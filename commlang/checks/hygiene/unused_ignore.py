"""A comment that silences nothing (CL506).

`# commlang: ignore[CL231] reason` silences the findings of a code on its line. Here there is none:
the mistake was mended, the line has moved, or the code is another. Left in place, the comment would
silence the next mistake on this line, which nobody has judged.

Remove the comment, or the code that is not found any more. It is told only where a file is checked
as a whole, for its defaults and presets and no backend in particular: with other options a finding
may be absent and the comment needed all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Label, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.source import Source, Span

RULE = Rule(
    "CL506",
    "unused-ignore",
    Severity.WARNING,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x)  # commlang: ignore[CL206] waited for by the caller  # CL506
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    h = async all_reduce(x)  # commlang: ignore[CL206] shows what a dropped handle does
""",
    ),
)


def report(source: Source, comment: Span, codes: Sequence[str]) -> Diagnostic:
    """The finding on a comment that names codes of which nothing is found."""
    message = f"nothing to ignore: no {' or '.join(codes)} is found here"
    hint = f"remove {' and '.join(codes)}, or the comment if it names nothing else"
    return Diagnostic(RULE.code, message, (Label(source, comment),), (), hint, RULE.severity)
