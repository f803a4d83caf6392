"""`commlang calibrate` on real ranks, and a run that is predicted with its file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlang.topology import load_machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

    Cli = Callable[..., Result]

ROOT = Path(__file__).parents[2]
SMALL = ("--sizes", "1Ki..16Ki", "--iters", "2", "--warmup", "0")
BLOCK = "send(x, dst=ranks.next) | recv(y, src=ranks.prev)"
TEXT = """\
pattern main(x: float32[n], y: float32[n], n = 1Ki):
    work = async all_reduce(x)
    scale(y, 2)
    wait(work)
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
"""


def commlang(folder: Path, *argv: str) -> str:
    """A command's output, in a process of its own that forks the ranks."""
    done = subprocess.run(
        [sys.executable, "-m", "commlang", *argv, "--backend", "gloo", "--nproc-per-node", "2"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    # So few bytes may tell no bandwidth, which is said and no failure.
    said = [line for line in done.stderr.splitlines() if "no bandwidth of" not in line]
    assert (done.returncode, said) == (0, [])
    return done.stdout


def test_a_machine_is_measured_and_a_run_predicted_with_it(folder: Path) -> None:
    (folder / "a.cl").write_text(TEXT)
    said = commlang(folder, "calibrate", "-o", "here.yaml", "--name", "here", *SMALL)
    assert said.startswith("2 ranks on gloo, ")
    assert "\nwritten to here.yaml; " in said
    assert sorted(p.name for p in folder.iterdir()) == ["a.cl", "here.yaml"]
    text = (folder / "here.yaml").read_text()
    for fact in ("# calibrated: ", "# ranks: 2 on gloo", "# host: ", "# versions: commlang "):
        assert fact in text
    machine = load_machine(folder / "here.yaml")
    assert (machine.name, machine.size) == ("here", 2)
    measured = machine.collective("all_reduce", 2)
    assert measured is not None
    assert [size for size, _ in measured.points] == [1 << 10, 4 << 10, 16 << 10]
    assert all(seconds > 0 for _, seconds in measured.points)

    said = commlang(folder, "run", "a.cl", "--predict", "here.yaml", "--iters", "2")
    rows = said[said.index("predicted on here:") :].splitlines()
    assert rows[1].split() == ["line", "statement", "measured", "predicted", "error"]
    texts = [re.split(r"  +", row.strip())[1] for row in rows[2:6]]
    assert texts == ["all_reduce(x)", "end of all_reduce(x)", "scale(y, 2)", BLOCK]
    assert re.fullmatch(r" +the whole( +[\d.]+ [µm]?s){2} +[+-]\d+%", rows[6])
    assert re.fullmatch(r"  the statements are off by \d+% in the middle", rows[7])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--sizes", "1Ki"), "one size gives no bandwidth"),
        (("--sizes", "1,2"), "--sizes from 4 bytes (a float32) to 256 MiB"),
        (("--sizes", "1Ki..1Gi"), "--sizes from 4 bytes (a float32) to 256 MiB"),
        (("-o", "none/a.yaml"), "cannot write none/a.yaml: there is no folder none"),
        (("--nproc-per-node", "1"), "1 is not in the range x>=2"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, argv: tuple[str, ...], said: str) -> None:
    result = cli("calibrate", *argv)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--predict", "dgx-h10"), "there is no machine `dgx-h10`"),
        (("--predict", "pcie-box", "--nproc-per-node", "16"), "8 devices, fewer than 16 ranks"),
        (("--predict", "pcie-box", "--iters", "0"), "so there is nothing to compare"),
    ],
)
def test_a_prediction_that_cannot_be_is_refused(cli: Cli, argv: tuple[str, ...], said: str) -> None:
    result = cli("run", "all_reduce", "--backend", "gloo", *argv)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
