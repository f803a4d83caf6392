"""What `commlang lint` prints: colour, where a terminal wants it, and the summary."""

from __future__ import annotations

import io
import re

import pytest

from commlang.diagnostics import Diagnostic, Severity
from commlang.report.lint import lint_json, render_finding, render_text, summary, wants_colour
from commlang.source import Source
from commlang.verify import Outcome, lint_source

FAULTY = "pattern main(x: float32[8]):\n    send(x, dst=ranks.next)\n    recv(x, src=ranks.prev)\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, True),
        ({"TERM": "xterm"}, True),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(environ: dict[str, str], expected: bool) -> None:
    assert wants_colour(Terminal(), environ) is expected
    assert wants_colour(io.StringIO(), environ) is False


def test_colour_adds_nothing_but_colour() -> None:
    outcome = lint_source(Source(FAULTY, "a.cl"))
    plain, painted = render_text(outcome), render_text(outcome, colour=True)
    assert "\033" not in plain
    assert re.sub(r"\033\[[0-9;]*m", "", painted) == plain
    assert painted.startswith("\033[1;31merror[CL201]\033[0m\033[1m: deadlock: 4 ranks")
    assert "  \033[34m-->\033[0m a.cl:2:5\n" in painted
    assert (
        "  \033[34m|\033[0m\033[1;31m     ^^^^^^^^^^^^^^^^^^^^^^^ rank 0 waits here\033[0m\n"
        in painted
    )
    assert "  \033[36m= help:\033[0m put both ends" in painted


def test_warning_is_yellow() -> None:
    found = Diagnostic("CL000", "odd: but fine", severity=Severity.WARNING)
    painted = "\033[1;33mwarning[CL000]\033[0m\033[1m: odd: but fine\033[0m"
    assert render_finding(found, colour=True) == painted


def finding(path: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    outcome = lint_source(Source("pattern (", path))
    (found,) = outcome.findings
    return Diagnostic(found.code, found.message, found.labels, severity=severity)


def test_summary() -> None:
    assert summary(Outcome(files=1, patterns=1)) == "checked 1 pattern in 1 file: no findings"
    assert (
        summary(Outcome(files=5, patterns=1200)) == "checked 1,200 patterns in 5 files: no findings"
    )
    outcome = Outcome(files=3, patterns=2)
    outcome.add([finding("a.cl"), finding("b.cl"), finding("a.cl")])
    assert summary(outcome) == "2 errors in 2 files (2 patterns checked); see `commlang rule CL001`"
    outcome.add([finding("c.cl", Severity.WARNING)])
    assert (
        summary(outcome)
        == "2 errors and 1 warning in 3 files (2 patterns checked); see `commlang rule CL001`"
    )


def test_finding_without_a_place() -> None:
    outcome = Outcome(files=1)
    outcome.add([Diagnostic("CL121", "no such parameter", help="another")] * 2)
    data = lint_json(outcome)
    assert data["findings"] == [
        {
            "code": "CL121",
            "severity": "error",
            "message": "no such parameter",
            "path": None,
            "line": None,
            "column": None,
            "end": None,
            "labels": [],
            "notes": [],
            "help": "another",
            "extra": {},
        }
    ]
    assert summary(outcome) == "1 error in 1 file (0 patterns checked); see `commlang rule CL121`"
