"""`commlang import` on the command line."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from commlang.cli import main
from commlang.convert.pipeline import pattern_name

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipelines"
SCHEDULE = "0F0,0SEND_F0\n1RECV_F0,1F0\n"
PATTERN = '''\
extern forward(x: read bfloat16[n], y: write bfloat16[n], stage: int, m: int):
    """A stage on micro-batch m; the last one computes its loss too."""
    cost 1ms

pattern small(x: bfloat16[2, 1, n], y: bfloat16[2, 1, n], n = 256):
    """2 stages on 2 ranks, 1 micro-batch: the schedule of small.csv.

    x[s, m] is the input of stage s for micro-batch m, y[s, m] its output. As in torch, a message
    runs while others are computed; what a computation needs is waited for before it, and the sends
    at the end.
    """
    require world == 2, "the schedule is for 2 ranks"
    let at = [0, 1]  # the rank of each stage
    ensure x[s] @ at[s] == y[s - 1] @ at[s - 1] for s in range(1, 2)

    if rank == 0:
        forward(x[0, 0], y[0, 0], 0, 0)
        sent_y[0, 0] = async send(y[0, 0], dst=1)
    if rank == 1:
        got_x[1, 0] = async recv(x[1, 0], src=0)
        wait(got_x[1, 0])
        forward(x[1, 0], y[1, 0], 1, 0)
    wait(sent_y)
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.csv").write_text(SCHEDULE)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_pattern_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "small.csv"]) == 0
    assert capsys.readouterr() == (PATTERN, "")


def test_a_pattern_in_a_file_that_is_not_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["import", "small.csv", "--stages", "loop", "-o", "small.cl"]
    assert main(argv) == 0
    assert (folder / "small.cl").read_text() == PATTERN
    assert capsys.readouterr().err == "wrote small.cl; check it with `commlang lint small.cl`\n"
    assert main(argv) == 2
    assert capsys.readouterr().err == "error: small.cl exists already; choose another name\n"
    assert main(["lint", "small.cl", "--backend", "nccl"]) == 0


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = b"0F0\n1F0,1XY0\n"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert main(["import", "-"]) == 2
    assert capsys.readouterr().err.startswith(
        "error: <stdin>:2:5: `1XY0`: there is no action `XY`; there are F, B, I, W, SEND_F,"
    )


@pytest.mark.parametrize("argv", [["missing.csv"], ["."], ["small.csv", "-o", "no/where.cl"]])
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_read_or_written(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", *argv]) == 2
    assert capsys.readouterr().err.startswith("error: cannot ")


def test_a_swap_is_told_with_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXAMPLES)
    assert main(["import", "zbv_zero_bubble_2_deferred.csv"]) == 0
    assert capsys.readouterr().err == (
        "warning: zbv_zero_bubble_2_deferred.csv:2:71: on rank 1, `2RECV_B0` gets what `0SEND_F2` "
        "sent, since messages between two ranks come in the order in which they are sent; 1 more "
        "receives are mixed up\n"
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/zbv-2x4.csv", "zbv_2x4"),
        ("1F1B.csv", "schedule_1f1b"),
        ("forward.csv", "schedule_forward"),
        ("for.csv", "schedule_for"),
        ("<stdin>", "stdin"),
        ("…", "schedule"),
    ],
)
def test_the_name_of_the_pattern(path: str, name: str) -> None:
    assert pattern_name(path) == name
