"""`commlang rule`: a page for each code, and the list of all."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from commlang.checks.pages import pages
from commlang.report.rules import render_list, render_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

    Cli = Callable[..., Result]


@pytest.mark.parametrize("code", ["CL202", "cl202", "unmatched-send"])
def test_a_page(cli: Cli, code: str) -> None:
    result = cli("rule", code)
    assert (result.code, result.err) == (0, "")
    head = (
        "CL202 unmatched-send (error)\n\nA send that no recv meets\n\nMessages match in the order"
    )
    assert result.out.startswith(head)
    assert "issue 38174: https://github.com/pytorch/pytorch/issues/38174\n" in result.out
    assert "\nWrong:\n\n    # world: 2\n    pattern main(" in result.out
    assert "            send(x, dst=1)  # CL202\n" in result.out
    assert "\nRight:\n" in result.out


def test_a_link_into_the_documentation_names_the_document(cli: Cli) -> None:
    assert "- Files and imports (docs/language.md)\n" in cli("rule", "CL106").out


def test_the_list_has_all_by_group(cli: Cli) -> None:
    lines = cli("rule").out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == list(pages())
    groups = [line for line in lines if line and not line.startswith(" ")]
    assert groups[:3] == ["Text", "Names, types and values", "Communication"]
    assert groups[-1] == "Hygiene"
    assert any(
        line.split(maxsplit=2) == ["CL202", "unmatched-send", "A send that no recv meets"]
        for line in lines
    )


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("CL20", "did you mean `CL2"),
        ("unmatched-snd", "did you mean `unmatched-send`?"),
        ("xyzzy", "`commlang rule` lists them"),
    ],
)
def test_unknown_code(cli: Cli, code: str, hint: str) -> None:
    result = cli("rule", code)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: there is no rule `{code}`; {hint}")


def test_colour_adds_nothing_but_colour() -> None:
    page = pages()["CL202"]
    for plain, painted in (
        (render_page(page), render_page(page, colour=True)),
        (render_list(), render_list(colour=True)),
    ):
        assert "\033" not in plain
        for tone in ("1", "1;31", "36", "0"):
            painted = painted.replace(f"\033[{tone}m", "")
        assert painted == plain


def test_a_terminal_gets_colour(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    cli("rule", "CL202")
    assert terminal.getvalue().startswith("\033[1mCL202 unmatched-send\033[0m (error)\n")
