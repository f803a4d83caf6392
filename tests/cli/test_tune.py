"""`commlang tune` on real ranks, and `auto:TABLE` on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlang.tuning.table import Table
from tests.cli.processes import finish
from tests.tuning.tables import table
from tests.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

    Cli = Callable[..., Result]

ROOT = Path(__file__).parents[2]
DEADLINE_S = 100

MINE = """\
pattern mine(x: dtype[n], n = 8, op = sum, dtype = float32):
    ensure x == op(old(x) @ r for r in ranks)

    reduce(x, dst=0, op=op)
    broadcast(x, src=0)
"""


def command(folder: Path, *argv: str, under: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """A command in a process of its own, which forks its ranks; or under torchrun."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if not under:
        ((code, out, err),) = finish(Warm(argv, folder, environment))
        return code, out, err
    found = subprocess.run(
        [sys.executable, *under, "-m", "commlang", *argv],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return found.returncode, found.stdout, found.stderr


def test_a_table_is_measured(cli: Cli, folder: Path) -> None:
    (folder / "mine.cl").write_text(MINE)
    names = ("mine.cl", "tree_all_reduce", "hierarchical_all_reduce")
    code, out, err = command(
        folder,
        *("tune", *names, "--collective", "all_reduce", "--sizes", "64,1Ki", "-d", "int32"),
        *("--rounds", "7", "--calls", "1", "-o", "tuned.json", "-v"),
        *("--nproc-per-node", "3", "--nproc-per-node", "2"),
    )
    assert (code, err) == (
        0,
        "`hierarchical_all_reduce` takes no part at 3 ranks: "
        "required: the ranks must fill whole nodes\n",
    )
    assert out.startswith("all_reduce of int32 on gloo, cpu; torch ")
    found = Table.read(folder / "tuned.json")
    places = [(row.world, row.bytes) for row in found.rows]
    assert places == [(2, 64), (2, 1024), (3, 60), (3, 1020)]
    mine = str(folder / "mine.cl")
    for row in found.rows:
        names = ["all_reduce", mine, "tree_all_reduce"]
        assert list(row.times) == names + ["hierarchical_all_reduce"] * (row.world == 2)
        assert row.times["all_reduce"].turns == 7
        assert {times.turns for times in row.times.values()} <= {6, 7}
        assert all(0 < t.p10 <= t.p50 <= t.p90 for t in row.times.values())
    result = cli("run", "auto:tuned.json", "--dry-run", "-v", "--nproc-per-node", "4")
    assert result.code == 0
    assert result.err.startswith("auto: `all_reduce` itself: 4 ranks were not measured, but 2, 3\n")


@pytest.mark.slow
def test_the_ranks_of_a_launcher_are_tuned_for(folder: Path) -> None:
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
    what = ("tune", "--collective", "all_reduce", "--sizes", "64", "--rounds", "2", "-o")
    code, out, _ = command(folder, *what, "torchrun.json", under=torchrun)
    assert code == 0
    assert out.count("auto") == 1, "rank 0 alone speaks"
    code, _, err = command(folder, *what, "mpi.json", "--backend", "mpi", "--nproc-per-node", "2")
    assert (code, err) == (0, "")
    tables = [Table.read(folder / f"{name}.json") for name in ("torchrun", "mpi")]
    assert [found.backend for found in tables] == ["gloo", "commlang_mpi"]
    assert [[row.world for row in found.rows] for found in tables] == [[2], [2]]


@pytest.mark.parametrize(
    ("options", "name", "said"),
    [
        (("--set", "n=256"), "star_all_reduce", "auto: `star_all_reduce`: 5.0 times as fast at"),
        (("--set", "n=1Mi"), "tree_all_reduce", "auto: `tree_all_reduce`: 1.2 times as fast at"),
        (("--set", "n=8", "--set", "op=avg"), "main", "`tree_all_reduce` will not do: two values"),
        (("--set", "n=8", "--backend", "mpi"), "main", "tuned.json is not used: it was measured"),
    ],
)
def test_a_run_takes_what_the_table_says(
    cli: Cli, folder: Path, options: tuple[str, ...], name: str, said: str
) -> None:
    table().write(folder / "tuned.json")
    result = cli("run", "auto:tuned.json", "--dry-run", "-v", *options)
    assert result.code == 0
    assert result.out.startswith(f"{name} (")
    assert said in result.err


@pytest.mark.slow
def test_a_run_with_a_table_holds_on_real_ranks(folder: Path) -> None:
    table().write(folder / "tuned.json")
    options = ("--iters", "1", "--set", "n=50", "--set", "op=max")
    code, out, err = command(folder, "run", "auto:tuned.json", *options)
    assert (code, err) == (0, "")
    assert out.startswith("star_all_reduce (n = 50, op = max, dtype = float32)")
    assert "holds on every rank" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("tune",), "missing option '--collective'"),
        (("tune", "--collective", "all_redce"), "did you mean `all_reduce`?"),
        (("tune", "--collective", "barrier"), "`barrier` has no size to tune for"),
        (
            ("tune", "--collective", "all_gather_single"),
            "no other pattern of the library does what `all_gather_single` does",
        ),
        (
            ("tune", "ring_all_gather", "--collective", "all_reduce"),
            "`ring_all_gather` cannot stand in for `all_reduce`: its tensors are not",
        ),
        (("tune", "--collective", "all_reduce", "-d", "float"), "-d float: there is no such dtype"),
        (
            ("tune", "--collective", "all_reduce", "--sizes", "8..4"),
            "`8..4`: write the smaller one first, as in `1Ki..1Mi:x4`",
        ),
        (("tune", "--collective", "all_reduce", "--sizes", "4..8:x1"), "steps are a factor from 2"),
        (("tune", "--collective", "all_reduce", "--sizes", "some"), "some"),
        (("run", "auto:none.json"), "cannot read none.json: No such file or directory"),
        (("run", "auto:bad.json"), "bad.json is no table of `commlang tune`, version 1: Invalid"),
    ],
)
def test_what_makes_no_sense(
    cli: Cli, folder: Path, options: tuple[str, ...], message: str
) -> None:
    (folder / "bad.json").write_text("{")
    result = cli(*options)
    assert result.code == 2
    assert message in result.err
