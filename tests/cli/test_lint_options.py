"""`commlang lint`: which rules, for which target, in which format, and what is mended."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from commlang.checks.selection import Selection
from commlang.cli.lint_options import make_selection, make_target
from commlang.errors import UsageError
from commlang.transports import Backend, NcclInit, Target
from commlang.version import TORCH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

    Cli = Callable[..., Result]

FAULTY = """\
pattern main(x: float32[8], y: float32[8], k = 1):
    send(x, dst=ranks.next)  # on its way
    recv(y, src=ranks.prev)
"""
MENDED = """\
pattern main(x: float32[8], y: float32[8], k = 1):
    parallel:
        send(x, dst=ranks.next)  # on its way
        recv(y, src=ranks.prev)
"""


def codes(result: Result) -> list[str]:
    return [found["code"] for found in json.loads(result.out)["findings"]]


@pytest.mark.parametrize(
    ("select", "ignore", "advice", "wanted", "unwanted"),
    [
        ((), (), False, "CL201 CL502", "CL401"),
        ((), (), True, "CL201 CL401", ""),
        (("CL4",), (), False, "CL401", "CL201"),
        (("ALL",), (), False, "CL201 CL401 CL501", ""),
        (("cl2, CL502",), (), False, "CL201 CL502", "CL501 CL401"),
        (("CL2",), ("CL20",), False, "CL211", "CL201 CL501"),
        ((), ("CL2", "CL5"), True, "CL401", "CL201 CL501"),
        ((), ("CL4",), True, "CL201", "CL401"),
        (("CL201",), ("CL2",), False, "CL201", "CL202"),
        (("CL2",), (), True, "CL201 CL401", "CL501"),
    ],
)
def test_selection(
    select: tuple[str, ...], ignore: tuple[str, ...], advice: bool, wanted: str, unwanted: str
) -> None:
    selection = make_selection(select, ignore, advice)
    assert [code for code in wanted.split() if not selection.wants(code)] == []
    assert [code for code in unwanted.split() if selection.wants(code)] == []


def test_default_selection_is_all_but_advice() -> None:
    assert make_selection((), (), False) == Selection()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CL999", "--select CL999: there is no such rule; did you mean `CL"),
        ("deadlock", "--select DEADLOCK: this is no code; write codes or their beginnings"),
        ("CL201,", "--select (nothing): this is no code"),
        ("CL2011", "--select CL2011: this is no code"),
    ],
)
def test_unknown_code(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_selection((text,), (), False)
    assert str(caught.value).startswith(message)


def test_target() -> None:
    assert make_target(None, "lazy", None, None, TORCH) == Target()
    target = Target(Backend.NCCL, NcclInit.EAGER, "cuda", 8, "2.7")
    assert make_target("nccl", "eager", "cuda", 8, "2.7") == target


def test_nodes_and_the_release_of_torch_are_told(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("pattern main(x: float32[8Mi]):\n    all_reduce(x, op=avg)\n")
    lint = ("lint", "a.cl", "--advice", "--output-format", "json")
    assert codes(cli(*lint)) == []
    assert codes(cli(*lint, "--ranks-per-node", "2")) == ["CL411"]
    assert codes(cli(*lint, "--backend", "gloo", "--torch", "2.8")) == []
    result = cli("lint", "a.cl", "--backend", "gloo", "--torch", "2.7")
    assert "gloo has no `avg` of float32 for all_reduce in torch 2.7" in result.out
    assert "gloo has it since torch 2.8; before, it may sum silently" in result.out
    assert "on float32 it has sum, product, min, max\n" in result.out


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--torch", "new", "`new` is not a release such as 2.13"),
        ("--ranks-per-node", "0", "`0` is not a whole number from 1 up"),
    ],
)
def test_values_that_make_no_sense(
    cli: Cli, folder: Path, option: str, value: str, message: str
) -> None:
    (folder / "a.cl").write_text(FAULTY)
    result = cli("lint", "a.cl", option, value)
    assert result.code == 2
    assert message in result.err


def test_only_what_is_selected_is_found(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(FAULTY)
    lint = ("lint", "a.cl", "--output-format", "json")
    assert codes(cli(*lint)) == ["CL502", "CL201"]
    assert codes(cli(*lint, "--select", "CL5")) == ["CL502"]
    assert codes(cli(*lint, "--ignore", "CL5")) == ["CL201"]
    assert codes(cli(*lint, "--backend", "gloo")) == ["CL502", "CL201"]
    result = cli(*lint, "--select", "CL211")
    assert (result.code, codes(result)) == (0, [])


def test_errors_of_the_language_are_always_told(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("pattern main(x: float32[8]):\n    all_reduce(y)\n")
    assert "error[CL101]" in cli("lint", "a.cl", "--select", "CL2", "--ignore", "CL1").out


def test_warnings_fail(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(FAULTY)
    result = cli("lint", "a.cl", "--select", "CL5")
    assert result.code == 1
    assert result.out.endswith(
        "1 warning in 1 file (1 pattern checked); see `commlang rule CL502`\n"
    )


def test_github_commands(cli: Cli, folder: Path) -> None:
    (folder / "a,b.cl").write_text(FAULTY)
    lines = cli("lint", "a,b.cl", "--output-format", "github").out.splitlines()
    warning, error, summary = lines
    assert warning == (
        "::warning title=commlang CL502,file=a%2Cb.cl,line=1,endLine=1,col=44,endColumn=45"
        "::parameter `k` of `main` is never used"
        "%0Ahelp: remove it, or call it `_k` if callers must give it"
    )
    assert error.startswith(
        "::error title=commlang CL201,file=a%2Cb.cl,line=2,endLine=2,col=5,endColumn=28"
        "::deadlock: 4 ranks wait for one another%0Arank 0 waits at 2:5"
    )
    assert summary.startswith("1 error and 1 warning in 1 file")


def test_sarif(cli: Cli, folder: Path) -> None:
    (folder / "a b.cl").write_text(FAULTY)
    log = json.loads(cli("lint", "a b.cl", "--output-format", "sarif").out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["CL201", "CL502"]
    assert rules[0]["name"] == "Deadlock"
    assert rules[0]["help"]["text"].startswith("Ranks that wait for one another in a ring\n\n")
    unused, deadlock = run["results"]
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == ["CL502", "CL201"]
    assert (unused["level"], deadlock["level"]) == ("warning", "error")
    place = deadlock["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b.cl"}
    assert place["region"] == {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 28}
    (change,) = deadlock["fixes"][0]["artifactChanges"]
    first = change["replacements"][0]
    assert first["insertedContent"]["text"] == "    parallel:\n    "
    assert first["deletedRegion"]["startLine"] == first["deletedRegion"]["endLine"] == 2


def test_fix_mends_and_checks_again(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(FAULTY)
    (folder / "b.cl").write_text("pattern main(x: float32[8]):\n    all_reduce(x)\n")
    result = cli("lint", ".", "--fix", "--ignore", "CL5")
    assert (result.code, result.err) == (0, "fixed 1 finding in a.cl (CL201)\n")
    assert result.out == "checked 2 patterns in 2 files: no findings\n"
    assert (folder / "a.cl").read_text() == MENDED
    again = cli("lint", ".", "--fix")
    assert (again.code, again.err) == (1, "")
    assert "warning[CL502]" in again.out


def test_diff_writes_nothing(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(FAULTY)
    result = cli("lint", "a.cl", "--diff")
    assert result.code == 1
    assert result.out.startswith("--- a.cl\n+++ a.cl (fixed)\n")
    assert "+    parallel:\n+        send(x, dst=ranks.next)  # on its way\n" in result.out
    assert (folder / "a.cl").read_text() == FAULTY
    (folder / "a.cl").write_text(MENDED)
    assert cli("lint", "a.cl", "--diff") == type(result)(0, "", "")
    assert cli("lint", "-", "--diff", stdin=FAULTY).out.startswith("--- <stdin>\n")


@pytest.mark.parametrize("path", ["-", "ring_all_reduce", "nope.cl"])
def test_fix_needs_a_file(cli: Cli, path: str) -> None:
    result = cli("lint", path, "--fix", stdin=FAULTY)
    message = f"error: --fix cannot write {path}; give a file, or --diff\n"
    assert (result.code, result.err) == (2, message)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_fix_of_a_read_only_file(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(FAULTY)
    (folder / "a.cl").chmod(0o444)
    result = cli("lint", "a.cl", "--fix")
    assert (result.code, "cannot write a.cl: it is read-only" in result.err) == (2, True)


def test_a_mended_file_keeps_its_line_endings(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_bytes(b"\xef\xbb\xbf" + FAULTY.replace("\n", "\r\n").encode())
    cli("lint", "a.cl", "--fix")
    assert (folder / "a.cl").read_bytes() == (
        b"\xef\xbb\xbf" + MENDED.replace("\n", "\r\n").encode()
    )


def test_worlds_of_which_none_is_accepted_are_no_success(cli: Cli, folder: Path) -> None:
    text = "pattern a(x: float32[8]):\n    require world % 2 == 0\n    all_reduce(x)\n"
    (folder / "a.cl").write_text(text)
    result = cli("lint", "a.cl", "--world", "3,5,7")
    assert result.code == 2
    assert "no pattern was checked, since none accepts any of these worlds" in result.err
    assert cli("lint", "a.cl", "--world", "3,4").code == 0


def test_json_and_sarif_are_printed_of_what_cannot_be_read_too(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_bytes(b"\xff\x00")
    for output_format in ("json", "sarif"):
        result = cli("lint", "a.cl", "--output-format", output_format)
        assert result.code == 2
        assert json.loads(result.out)
