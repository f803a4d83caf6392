"""`commlang draw`: what it takes, what it refuses, and how it ends."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commlang.plan import make_plan
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.trace import RankTrace, write_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

PAIR = """\
pattern pair(x: float32[n], n = 8):
    preset three: world = 3, n = 4
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        recv(x, src=0)
"""


@pytest.fixture
def pair(folder: Path) -> Path:
    path = folder / "pair.cl"
    path.write_text(PAIR, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.svg", "<svg "),
        ("a.HTML", "<!DOCTYPE html>"),
        ("a.mmd", "sequenceDiagram"),
        ("a.dot", "digraph"),
        ("a.gv", "digraph"),
        ("a.txt", "pair (n = 8) on 2 ranks"),
    ],
)
def test_the_ending_names_the_format(
    cli: Callable[..., Result], pair: Path, name: str, begins: str
) -> None:
    result = cli("draw", "pair.cl", "--world", "2", "-o", name)
    assert (result.code, result.out, result.err) == (0, "", f"wrote {name}\n")
    assert Path(name).read_text(encoding="utf-8").startswith(begins)


def test_without_a_file_it_is_svg_on_standard_output(
    cli: Callable[..., Result], pair: Path
) -> None:
    result = cli("draw", "-", stdin=PAIR)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("<svg ")
    of_file = cli("draw", "pair.cl", "--format", "svg").out
    assert result.out == of_file.replace("pair.cl:", "&lt;stdin&gt;:")


def test_parameters_and_presets(cli: Callable[..., Result], pair: Path) -> None:
    given = ("draw", "pair.cl", "--format", "text")
    assert cli(*given, "--preset", "three").out.startswith("pair (n = 4) on 3 ranks\n")
    result = cli(*given, "--preset", "three", "--set", "n=2", "--world", "5")
    assert result.out.startswith("pair (n = 2) on 5 ranks\n")


def test_only_some_ranks(cli: Callable[..., Result], pair: Path) -> None:
    result = cli("draw", "pair.cl", "--world", "9", "--format", "text", "--ranks", "1..2, 7")
    lanes = [line.split("  ")[0] for line in result.out.splitlines() if line.startswith("rank")]
    assert lanes == ["rank 1", "rank 2", "rank 7"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ranks", "a"), "error: --ranks a: write ranks as in `0..3,7`\n"),
        (("--ranks", ""), "error: --ranks : write ranks as in `0..3,7`\n"),
        (("--ranks", "1..-1"), "error: --ranks 1..-1: write ranks as in `0..3,7`\n"),
        (("--ranks", "2..4"), "error: --ranks 2..4: ranks go from 0 to 3, lower ones first\n"),
        (("--ranks", "1..0"), "error: --ranks 1..0: ranks go from 0 to 3, lower ones first\n"),
        (
            ("-o", "a.png"),
            "error: -o a.png: give --format, or a name that ends in .svg, .html, .htm, .mmd, "
            ".mermaid, .dot, .gv, .txt\n",
        ),
        (("-o", "no/a.svg"), "error: cannot write no/a.svg: No such file or directory\n"),
        (("--from", "no.json"), "error: cannot read no.json: No such file or directory\n"),
        (("--set", "m=1"), "error: --set m: `pair` has no such parameter; it has n\n"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cli: Callable[..., Result], pair: Path, options: tuple[str, ...], message: str
) -> None:
    result = cli("draw", "pair.cl", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err == message


def test_a_deadlock_is_drawn_and_is_a_failure(cli: Callable[..., Result], folder: Path) -> None:
    text = PAIR.replace("        send(x, dst=1)", "        recv(x, src=1)\n        send(x, dst=1)")
    text += "        send(x, dst=0)\n"
    (folder / "pair.cl").write_text(text, encoding="utf-8")
    result = cli("draw", "pair.cl", "--world", "2", "--format", "text")
    assert result.code == 1
    assert "error[CL201]: deadlock: 2 ranks wait for one another" in result.err
    assert result.err.endswith("`pair` is drawn all the same, in program order\n")
    assert "1: rank 0 waits at pair.cl:4:9 `recv(x, src=1)` for rank 1 to reach" in result.out


def test_what_cannot_be_read_is_not_drawn(cli: Callable[..., Result], folder: Path) -> None:
    (folder / "pair.cl").write_text("pattern pair(:\n", encoding="utf-8")
    result = cli("draw", "pair.cl", "-o", "a.svg")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error[CL")
    assert not Path("a.svg").exists()


def test_a_picture_does_not_replace_its_pattern(cli: Callable[..., Result], pair: Path) -> None:
    result = cli("draw", "pair.cl:pair", "--format", "svg", "-o", "./pair.cl")
    assert result.code == 2
    assert result.err == "error: -o ./pair.cl: this is the pattern itself; name another file\n"
    result = cli("draw", "pair.cl", "--from", "pair.cl", "--format", "svg", "-o", "pair.cl")
    assert result.code == 2
    Path("run.json").write_text("{}", encoding="utf-8")
    result = cli("draw", "pair.cl", "--from", "run.json", "--format", "svg", "-o", "run.json")
    assert result.err == "error: -o run.json: this is the trace itself; name another file\n"
    result = cli("run", "pair.cl:pair", "--trace", "pair.cl")
    assert result.err == "error: --trace pair.cl: this is the pattern itself; name another file\n"
    result = cli("bench", "all_reduce", "--vs", "pair.cl", "-J", "pair.cl")
    assert result.err == "error: -J pair.cl: this is the pattern itself; name another file\n"
    result = cli("tune", "pair.cl", "--collective", "all_reduce", "-o", "pair.cl")
    assert result.err == "error: -o pair.cl: this is the pattern itself; name another file\n"
    assert pair.read_text(encoding="utf-8") == PAIR


def test_text_holds_no_commands_for_a_terminal(cli: Callable[..., Result], folder: Path) -> None:
    text = PAIR + '    compute(1ms, label="\x1b[2J\x1b[31mred\x07")\n'
    (folder / "pair.cl").write_text(text, encoding="utf-8")
    for form in ("text", "svg", "mermaid", "dot"):
        result = cli("draw", "pair.cl", "--format", form)
        assert result.code == 0
        assert "red" in result.out
        assert not {"\x1b", "\x07"} & set(result.out)


def test_the_order_of_a_run(cli: Callable[..., Result], folder: Path) -> None:
    text = """\
pattern late(x: float32[n], y: float32[n], n = 8):
    compute(1ms, reads=[y])
    all_reduce(x)
"""
    (folder / "late.cl").write_text(text, encoding="utf-8")
    given = ("draw", "late.cl", "--format", "text", "--world", "2")
    assert "rank 0  (compute         ){all_reduce x    }" in cli(*given).out
    result = cli(*given, "--schedule", "overlap")
    assert "rank 0  {all_reduce x" in result.out


def test_simulated_times(cli: Callable[..., Result], pair: Path) -> None:
    result = cli("draw", "pair.cl", "--topology", "dgx-h100", "--format", "text", "--world", "2")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[1].startswith("Simulated on dgx-h100; ")
    picture = cli("draw", "pair.cl", "--topology", "dgx-h100").out
    assert ">critical path</text>" in picture
    assert " · on the critical path</title>" in picture


def test_measured_times_stand_below_planned_ones(cli: Callable[..., Result], pair: Path) -> None:
    module = load_module(Source(PAIR, "pair.cl"))
    plan = make_plan(module.symbols["pair"], 2, schedule="program")
    marks = [np.array([[1.0, 1.002]]), np.array([[1.001, 1.003]])]
    traces = [RankTrace(rank, "host", marks[rank]) for rank in range(2)]
    write_trace("run.json", plan, traces, {}, 1)
    result = cli("draw", "pair.cl", "--from", "run.json", "--format", "text")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    told = "Program order, all steps equally long; below it measured; 3 ms in all."
    assert lines[1] == told
    lanes = [line.split("  ")[0] for line in lines[5:9]]
    assert lanes == ["rank 0", "measured", "rank 1", "measured"]
    text = Path("run.json").read_text(encoding="utf-8")
    Path("long.json").write_text(text.replace('"n": "8"', '"n": "SHA-256 ab"'), encoding="utf-8")
    long = cli("draw", "pair.cl", "--from", "long.json")
    assert "error: the value of `n` is too long for long.json; give --set" in long.err
    long = cli("draw", "pair.cl", "--from", "long.json", "--set", "n=8")
    assert "long.json is of other parameters" in long.err
    other = cli("draw", "pair.cl", "--from", "run.json", "--set", "n=9", "--format", "text")
    assert other.code == 2
    assert "run.json is of other parameters: n = 8, not n = 9" in other.err


def test_pictures_are_utf_8_whatever_the_terminal_is(
    cli: Callable[..., Result], pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    cli("draw", "pair.cl", "--world", "2", "--format", "svg")
    sys.stdout.flush()
    assert "send → 1" in raw.getvalue().decode("utf-8")
