"""`commlang bench`: sizes, columns and JSON in the manner of nccl-tests, on real ranks."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from commlang.execute.bench import Sample
from commlang.report.bench import Row, as_json, footer, line, spread
from tests.cli.processes import finish
from tests.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

    Cli = Callable[..., Result]

ROW = Row(
    name="ring_all_reduce",
    size=1 << 20,
    count=1 << 18,
    type="float32",
    redop="sum",
    root=-1,
    ranks=4,
    operation="all_reduce",
    in_place=True,
    time=1e-3,
    percentiles={10: 5e-4, 50: 9e-4, 90: 2e-3, 99: 0.1234},
    wrong=0,
    runs=20,
)


def test_a_row_has_the_columns_of_nccl_tests() -> None:
    halves = "N/A N/A N/A N/A 1000.0 1.05 1.57 0"
    shown = f"1048576 262144 float32 sum -1 {halves} 500.00 900.00 2000.0 123400"
    assert " ".join(line(ROW).split()) == shown


def test_bandwidths_are_of_the_busiest_link() -> None:
    assert ROW.alg_bw == pytest.approx(1.048576)
    assert ROW.bus_bw == pytest.approx(1.048576 * 1.5)


def test_the_end_of_a_table_tells_what_was_wrong() -> None:
    assert footer([ROW]).startswith("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.57")
    wrong = footer([ROW, _with(wrong=3)])
    assert wrong.startswith("# Out of bounds values : 3 FAILED\n")


def test_json_has_the_keys_of_nccl_tests() -> None:
    data = as_json([ROW, _with(in_place=False, wrong=None)], {"iterations": 20}, ["a"])
    first, second = data["results"]
    assert first["out_of_place"] is None
    assert first["in_place"]["time"] == pytest.approx(1000)
    assert second["in_place"] is None
    assert second["out_of_place"]["nwrong"] is None
    assert data["out_of_bounds"] == {"count": 0, "okay": True}
    assert data["average_bus_bandwidth"]["bandwidth"] == pytest.approx(ROW.bus_bw)


def _with(*, in_place: bool = True, wrong: int | None = 0) -> Row:
    names = ("name", "size", "count", "type", "redop", "root", "ranks", "operation")
    same = {name: getattr(ROW, name) for name in (*names, "time", "percentiles", "runs")}
    return Row(in_place=in_place, wrong=wrong, **same)


def test_percentiles_are_over_all_ranks() -> None:
    samples = [Sample([0.001 * i for i in range(1, 51)], 0), Sample([0.05] * 50, 0)]
    mean, percentiles = spread(samples)
    assert mean == pytest.approx((0.0255 + 0.05) / 2)
    assert percentiles[10] == pytest.approx(0.0109)
    assert percentiles[90] == pytest.approx(0.05)
    assert spread([Sample([0.5], None)]) == (0.5, dict.fromkeys((10, 50, 90, 99), 0.5))


def test_two_patterns_on_real_ranks(tmp_path: Path) -> None:
    text = "pattern plain(y: float32[n], x: float32[n], n = 8):\n    all_reduce(x)\n    x -> y\n"
    (tmp_path / "plain.cl").write_text(text)
    argv = (
        *("bench", "ring_all_reduce", "--vs", "plain.cl", "-b", "1Ki", "-e", "4Ki", "-n", "3"),
        *("-w", "1", "-N", "2", "-m", "2", "-o", "max", "-J", "out.json", "--nproc-per-node", "2"),
    )
    ((code, out, err),) = finish(Warm(argv, tmp_path, dict(os.environ)))
    assert (code, err) == (0, "")
    rows = [found.split() for found in re.findall(r"^ +\d.*$", out, re.MULTILINE)]
    assert [row[:5] for row in rows] == [
        ["1024", "256", "float32", "max", "-1"],
        ["4096", "1024", "float32", "max", "-1"],
        ["1024", "256", "float32", "none", "-1"],
        ["4096", "1024", "float32", "none", "-1"],
    ]
    assert all(row[5:9] == ["N/A"] * 4 and row[12] == "0" for row in rows[:2]), "in place"
    assert all(row[9:13] == ["N/A"] * 4 and row[8] == "N/A" for row in rows[2:]), "no contract"
    assert "2 ranks on gloo, cpu" in out
    data = json.loads((tmp_path / "out.json").read_text())
    assert [r["pattern"] for r in data["results"]] == ["ring_all_reduce"] * 2 + ["plain.cl"] * 2
    assert {r["actual_iterations"] for r in data["results"]} == {6}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("barrier",), "`barrier` has no parameter `n` for its size; it has none"),
        (("all_reduce", "-b", "2Ki", "-e", "1Ki"), "--maxbytes 1024 is less than --minbytes 2048"),
        (("all_reduce", "-i", "1"), "more than 1,000 sizes; take a larger step"),
        (("all_reduce", "-f", "1"), "1 is not in the range x>=2"),
        (("nothing_like_it",), "nothing_like_it"),
    ],
)
def test_what_makes_no_sense(
    cli: Cli, folder: Path, options: tuple[str, ...], message: str
) -> None:
    result = cli("bench", *options)
    assert result.code == 2
    assert message in result.err
