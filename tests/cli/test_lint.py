"""`commlang lint`: what is looked at, with which parameters, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlang.cli.lint import command
from commlang.expand.run import MAX_EVENTS
from commlang.syntax.literals import number

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

    Cli = Callable[..., Result]

ROOT = Path(__file__).parents[2]
CLEAN = """\
pattern main(x: float32[n], n = 1Ki):
    preset big: world = 8, n = 1Mi
    all_reduce(x)

pattern pair(x: float32[n], n = 8):
    require world == 2, "made for two"
    all_reduce(x)
"""
FAULTY = """\
pattern main(x: float32[8]):
    send(x, dst=ranks.next)
    recv(x, src=ranks.prev)
"""


@pytest.mark.slow  # by default, README.md's `commlang lint patterns` is run
def test_library_is_clean(cli: Cli) -> None:
    result = cli("lint", str(ROOT / "patterns"))
    files = len(list((ROOT / "patterns").rglob("*.cl")))
    assert result.out.endswith(f"patterns in {files} files: no findings\n"), result.out
    assert (result.code, result.err) == (0, "")


def test_clean_file(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(CLEAN)
    assert cli("lint", "a.cl").out == "checked 2 patterns in 1 file: no findings\n"
    assert cli("lint", "a.cl", "a.cl").out == "checked 2 patterns in 1 file: no findings\n"
    assert cli("lint", "a.cl:pair").out == "checked 1 pattern in 1 file: no findings\n"


def test_library_name_and_stdin(cli: Cli) -> None:
    assert cli("lint", "ring_all_reduce").out == "checked 1 pattern in 1 file: no findings\n"
    result = cli("lint", "-", stdin=FAULTY)
    assert result.code == 1
    assert "--> <stdin>:2:5" in result.out


def test_folder_is_searched_but_for_hidden_ones(cli: Cli, folder: Path) -> None:
    for name in ("b/x.cl", "a.cl", ".git/x.cl", "b/notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(FAULTY)
    result = cli("lint", ".")
    places = [line for line in result.out.splitlines() if "-->" in line]
    assert places == ["  --> a.cl:2:5", "  --> b/x.cl:2:5"]
    assert result.out.endswith(
        "2 errors in 2 files (2 patterns checked); see `commlang rule CL201`\n"
    )


def test_finding_is_told_once_for_all_presets(cli: Cli, folder: Path) -> None:
    text = FAULTY.replace(
        ":\n    send", ":\n    preset a: world = 8\n    preset b: world = 6\n    send"
    )
    (folder / "a.cl").write_text(text)
    result = cli("lint", "a.cl")
    assert result.out.count("error[CL201]") == 1
    assert "with world = 4\n" in result.out
    result = cli("lint", "a.cl", "--preset", "b")
    assert "deadlock: 6 ranks" in result.out
    assert "with world = 6 (preset `b`)\n" in result.out
    result = cli("lint", "a.cl", "--preset", "b", "--world", "3")
    assert "with world = 3 (preset `b`)\n" in result.out


def test_finding_in_an_import_is_told_once(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("pattern a(x: float32[8]):\n    all_reduce(y)\n")
    (folder / "b.cl").write_text("from a import a\n\npattern b(x: float32[8]):\n    a(x)\n")
    result = cli("lint", "./b.cl", "a.cl")
    assert result.out.count("error[CL101]") == 1
    assert result.out.endswith(
        "1 error in 1 file (0 patterns checked); see `commlang rule CL101`\n"
    )


def test_world_and_set_choose_one_case(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(CLEAN.replace("all_reduce(x)\n\n", "broadcast(x, src=5)\n\n"))
    assert "with world = 4, n = 1Ki\n" in cli("lint", "a.cl:main").out
    assert cli("lint", "a.cl:main", "--world", "6").code == 0
    result = cli("lint", "a.cl:main", "--set", "n=3*2**20")
    assert "with world = 4, n = 3Mi\n" in result.out


def test_requirement_at_the_world_asked_for_is_a_finding(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(CLEAN)
    result = cli("lint", "a.cl", "--world", "3")
    assert result.code == 1
    assert "error[CL124]: required: made for two\n  --> a.cl:6:5" in result.out
    assert "with world = 3, n = 8\n" in result.out


def test_named_pattern_must_be_checkable(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("pattern half(x: float32[8], k: int):\n    all_reduce(x[:k])\n")
    result = cli("lint", "a.cl")
    assert result.code == 0
    assert result.out == (
        "note: a.cl:1:9: `half` was checked only statically: `k` has no value; give --set k=…\n"
        "checked 0 patterns in 1 file: no findings\n"
    )
    result = cli("lint", "a.cl:half")
    assert result.code == 1
    assert "error[CL121]: parameter `k` has no value\n  --> a.cl:1:29" in result.out
    assert cli("lint", "a.cl:half", "--set", "k=2").code == 0


def test_fault_of_a_default_in_every_world_is_a_finding(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("pattern a(x: float32[n], n = 1 // 0):\n    all_reduce(x)\n")
    result = cli("lint", "a.cl")
    assert result.code == 1
    assert "error[CL110]" in result.out
    assert "--> a.cl:1:30" in result.out


def test_preset_that_is_no_constant_is_a_finding(cli: Cli, folder: Path) -> None:
    text = "pattern a(x: float32[n], n = 8, m = 2):\n    preset p: n = 2 * m\n    all_reduce(x)\n"
    (folder / "a.cl").write_text(text)
    result = cli("lint", "a.cl")
    assert result.code == 1
    assert "error[CL101]: `m` is not defined\n  --> a.cl:2:23" in result.out
    assert "= in preset `p`" in result.out


def test_max_events(cli: Cli, folder: Path) -> None:
    text = "pattern a(x: float32[8]):\n    for i in range(1000):\n        all_reduce(x)\n"
    (folder / "a.cl").write_text(text)
    result = cli("lint", "a.cl", "--max_events", "2k")
    assert result.code == 1
    assert "error[CL120]: this loop would expand to more than 2,000 events" in result.out
    assert cli("lint", "a.cl", "--max-events", "4Ki").code == 0
    (option,) = [p for p in command.params if p.name == "max_events"]
    assert number(str(option.default))[0] == MAX_EVENTS


def test_json(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(FAULTY)
    result = cli("lint", "a.cl", "--world", "2", "--output-format=json")
    data = json.loads(result.out)
    assert (result.code, data["version"], data["notes"]) == (1, 1, [])
    assert data["summary"] == {
        "files": 1,
        "patterns": 1,
        "errors": 1,
        "warnings": 0,
        "advice": 0,
        "ignored": 0,
    }
    (found,) = data["findings"]
    assert (found["code"], found["path"], found["line"], found["column"]) == ("CL201", "a.cl", 2, 5)
    assert found["end"] == {"line": 2, "column": 28}
    assert found["labels"][0]["text"] == "rank 0 waits here"
    assert found["help"].startswith("put both ends of rank 0 in one block")
    assert (found["extra"]["world"], found["extra"]["preset"]) == (2, None)
    assert found["extra"]["cycle"] == [
        {"rank": 0, "waits_at": "a.cl:2:5", "for_rank": 1, "to_reach": "a.cl:3:5"},
        {"rank": 1, "waits_at": "a.cl:2:5", "for_rank": 0, "to_reach": "a.cl:3:5"},
    ]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nope.cl"], "error: cannot read nope.cl: No such file or directory\n"),
        (
            ["ring_all_reduse"],
            "error: there is no file ring_all_reduse, and the pattern library has no "
            "`ring_all_reduse`; did you mean `ring_all_reduce`?\n",
        ),
        ([""], "error: an empty name names no file\n"),
        (["empty"], "error: there is no .cl file in empty\n"),
        (
            ["binary.cl"],
            "error: binary.cl:1: byte 0xff is not UTF-8; write it as UTF-8 text\n",
        ),
        (["a.cl:mian"], "error: a.cl has no pattern `mian`; did you mean `main`?\n"),
        (
            ["a.cl", "--set", "m=1"],
            "error: --set m: no pattern here has that parameter; there are n, k\n",
        ),
        (
            ["a.cl", "--preset", "bog"],
            "error: --preset bog: no pattern here has it; did you mean `big`?\n",
        ),
        (
            ["a.cl", "--preset", "q"],
            "error: --preset q: no pattern here has it; there are big\n",
        ),
        (
            ["a.cl", "--world", "2Mi"],
            "error: invalid value for '--world': `2Mi`: a world has at most 1,048,576 ranks\n"
            "try `commlang lint --help`\n",
        ),
        (
            ["a.cl", "--world", "0"],
            "error: invalid value for '--world': `0`: write a whole number from 1 up, "
            "`2..64`, `2..64:2` or `4,8,16`\n"
            "try `commlang lint --help`\n",
        ),
        (
            ["a.cl", "--max-events", "2ms"],
            "error: invalid value for '--max-events': `2ms` is not a whole number from 1 up\n"
            "try `commlang lint --help`\n",
        ),
        ([], "error: missing argument 'PATH...'\ntry `commlang lint --help`\n"),
    ],
)
def test_what_could_not_run(cli: Cli, folder: Path, argv: list[str], message: str) -> None:
    (folder / "a.cl").write_text(CLEAN.replace(", n = 8", ", n = 8, k = 1"))
    (folder / "binary.cl").write_bytes(b"\xff\x00")
    (folder / "empty").mkdir()
    result = cli("lint", *argv)
    assert (result.code, result.out, result.err) == (2, "", message)


def test_the_rest_is_linted_where_a_file_cannot_be_read(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(FAULTY)
    result = cli("lint", "nope.cl", "a.cl")
    assert (result.code, result.err) == (
        2,
        "error: cannot read nope.cl: No such file or directory\n",
    )
    assert result.out.endswith("1 error in 1 file (1 pattern checked); see `commlang rule CL201`\n")


def test_set_is_not_called_unknown_where_the_file_does_not_parse(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("pattern\n")
    result = cli("lint", "a.cl", "--set", "n=4")
    assert (result.code, result.err) == (1, "")
    assert "error[CL001]" in result.out
