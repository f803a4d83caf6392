"""`commlang lint --world` with many worlds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest

from commlang.cli.worlds import progress_line, worlds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

    Cli = Callable[..., Result]

TEXT = """\
pattern main(x: float32[n], n = 8):
    let partner = rank + 1 - 2 * (rank % 2)
    if rank < partner:
        send(x, dst=partner)
    else:
        recv(x, src=partner)
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8", (8,)),
        ("2..5", (2, 3, 4, 5)),
        ("2..9:3", (2, 5, 8)),
        ("16, 4,8,4", (4, 8, 16)),
        ("2..4,1Ki", (2, 3, 4, 1024)),
        ("7..7", (7,)),
    ],
)
def test_worlds_that_an_option_names(text: str, found: tuple[int, ...]) -> None:
    assert worlds(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "``: write a whole number from 1 up, `2..64`, `2..64:2` or `4,8,16`"),
        ("0..4", "`0..4`: write a whole number from 1 up, `2..64`, `2..64:2` or `4,8,16`"),
        ("2..", "`2..`: write a whole number from 1 up, `2..64`, `2..64:2` or `4,8,16`"),
        ("2..8:0", "`2..8:0`: write a whole number from 1 up, `2..64`, `2..64:2` or `4,8,16`"),
        ("3ms", "`3ms`: write a whole number from 1 up, `2..64`, `2..64:2` or `4,8,16`"),
        ("5..2", "`5..2` has no worlds; write the smaller one first"),
        ("2..2Mi", "`2..2Mi`: a world has at most 1,048,576 ranks"),
        ("1..5000", "`1..5000` is more than 4,096 worlds"),
    ],
)
def test_what_names_no_worlds(text: str, message: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        worlds(text)
    assert caught.value.message == message


def test_many_worlds_as_text(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(TEXT)
    result = cli("lint", "a.cl", "--world", "2..8")
    assert (result.code, result.err) == (1, "")
    assert "  = with world = 3, n = 8\n" in result.out
    assert "  = in odd worlds from 3: 3 of the 7 checked (2..8)\n" in result.out
    even = cli("lint", "a.cl", "--world", "2..8:2")
    assert (even.code, even.out.splitlines()) == (
        0,
        [
            "note: a.cl:1:9: `main` was checked in worlds 2..8:2; nothing is said of other worlds",
            "checked 1 pattern in 1 file: no findings",
        ],
    )


def test_many_worlds_as_json(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(TEXT)
    result = cli("lint", "a.cl", "--world", "2,3,5", "--output-format", "json")
    report = json.loads(result.out)
    (found,) = report["findings"]
    assert found["extra"] == {"world": 3, "preset": None, "worlds": [3, 5], "checked": [2, 3, 5]}
    assert report["worlds"] == [
        {
            "path": "a.cl",
            "pattern": "main",
            "checked": [2, 3, 5],
            "not_applicable": [],
            "undecided": [],
            "matching": "open",
        }
    ]
    single = json.loads(cli("lint", "a.cl", "--world", "2", "--output-format", "json").out)
    assert "worlds" not in single


def test_a_selection_holds_in_all_worlds(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(
        "pattern main(x: float32[8], y: float32[8]):\n    if rank == 0:\n"
        "        send(x, dst=1)\n        send(y, dst=world - 1)\n    else:\n        pass\n"
    )
    assert cli("lint", "a.cl", "--world", "2..4", "--ignore", "CL202").code == 0
    assert cli("lint", "a.cl", "--world", "2..4", "--select", "CL202").code == 1


def test_progress_is_shown_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert progress_line() is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show = progress_line()
    assert show is not None
    show("ring", 1, 2)
    show("ring", 2, 2)
    assert capsys.readouterr().err == "\r\x1b[Kring: 1 of 2 worlds\r\x1b[K"
