"""Comments that silence a finding: where they hold, and what is said of those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlang.checks.selection import Selection
from commlang.source import Source
from commlang.transports import Backend, Target
from commlang.verify import Choice, Options, Outcome, lint_source
from commlang.verify.lint import USUAL

if TYPE_CHECKING:
    from pathlib import Path

LOST = "pattern main(x: float32[8]):\n    h = async all_reduce(x)"


def told(text: str, options: Options = USUAL) -> list[str]:
    outcome = lint_source(Source(text, "a.cl"), None, options)
    return [f"{d.code} {d.where().removeprefix('a.cl:')} {d.message}" for d in outcome.findings]


def test_a_finding_is_silenced_and_counted() -> None:
    text = f"{LOST}  # commlang: ignore[CL206] the caller waits\n"
    outcome = lint_source(Source(text, "a.cl"))
    assert (outcome.findings, outcome.ignored) == ([], 1)
    assert not outcome.failed


@pytest.mark.parametrize(
    "comment",
    [
        "# commlang: ignore[CL206, CL231] two at once",
        "#commlang:ignore[CL206] close",
        "# the caller waits; commlang: ignore[CL206] so it is fine",
    ],
)
def test_spellings(comment: str) -> None:
    assert [line for line in told(f"{LOST}  {comment}\n") if "CL206" in line[:5]] == []


@pytest.mark.parametrize(
    ("comment", "fault"),
    [
        ("# commlang: ignore", "it names no code"),
        ("# commlang: ignore all", "it names no code"),
        ("# commlang: ignore[CL206]", "it gives no reason"),
        ("# commlang: ignore[206] because", "`[206]` is no list of codes"),
        ("# commlang: ignore[CL2] because", "`[CL2]` is no list of codes"),
        ("# commlang: ignore[] because", "`[]` is no list of codes"),
        (
            "# commlang: ignore[CL110] because",
            "CL110 cannot be ignored: what is wrong there leaves nothing to check",
        ),
    ],
)
def test_a_malformed_comment_silences_nothing(comment: str, fault: str) -> None:
    assert told(f"{LOST}  {comment}\n") == [
        f"CL507 2:30 this comment silences nothing: {fault}",
        "CL206 2:15 handle `h` is never waited for on rank 0",
    ]


def test_a_comment_on_a_line_of_its_own_is_malformed() -> None:
    text = LOST.replace("\n", "\n    # commlang: ignore[CL206] because\n") + "\n"
    first, second = told(text)
    assert first == (
        "CL507 2:5 this comment silences nothing: it stands on a line of its own; "
        "put it at the end of the line that it speaks of"
    )
    assert second.startswith("CL206 3:15")


def test_a_statement_over_several_lines_is_one() -> None:
    text = """\
pattern main(x: float32[8]):
    h = async all_reduce(  # commlang: ignore[CL206] because
        x,
        op=max,
    )
"""
    assert told(text) == []
    assert (
        told(
            text.replace("  # commlang: ignore[CL206] because", "").replace(
                "\n    )", "\n    )  # commlang: ignore[CL206] because"
            )
        )
        == []
    )


def test_another_line_is_not_silenced() -> None:
    text = f"{LOST}\n    scale(x, 2)  # commlang: ignore[CL206] the wrong line\n"
    assert [line.split()[0] for line in told(text, Options(selection=Selection(("CL206",))))] == [
        "CL206"
    ]


def test_an_unused_comment_is_told() -> None:
    text = """\
pattern main(x: float32[8]):
    all_reduce(x)  # commlang: ignore[CL206, CL210] once needed
"""
    assert told(text) == ["CL506 2:20 nothing to ignore: no CL206 or CL210 is found here"]
    for options in (
        Options(choice=Choice(world=2)),
        Options(target=Target(Backend.GLOO)),
        Options(selection=Selection(("CL23", "CL506"))),
        Options(selection=Selection(ignore=("CL5",))),
    ):
        assert told(text, options) == []


def test_what_depends_on_the_backend_is_never_called_unused() -> None:
    text = "pattern main(x: float32[8]):\n    all_reduce(x)  # commlang: ignore[CL262] on nccl\n"
    assert told(text) == []


def test_nothing_is_unused_where_errors_keep_rules_from_their_say() -> None:
    text = f"{LOST}\n    all_reduce(x)  # commlang: ignore[CL210] perhaps\n"
    assert [line.split()[0] for line in told(text)] == ["CL206"]


def test_a_finding_in_an_import_is_silenced_there(tmp_path: Path) -> None:
    helper = f"{LOST}  # commlang: ignore[CL206] shows it\n".replace("main", "helper")
    (tmp_path / "helper.cl").write_text(helper)
    text = "from helper import helper\n\npattern main(x: float32[8]):\n    helper(x)\n"
    outcome = Outcome()
    lint_source(Source(text, str(tmp_path / "a.cl")), outcome=outcome)
    outcome.judge_ignores(Selection())
    assert (outcome.findings, outcome.ignored) == ([], 1)
