"""Tables of measurements: what they choose, how they are read back, and what they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commlang.errors import CommlangError, UsageError
from commlang.report.tune import render
from commlang.tuning.table import Table, Times

from .tables import LARGE, SMALL, table

if TYPE_CHECKING:
    from pathlib import Path


def test_percentiles_are_of_turns() -> None:
    found = Times.of([0.001 * i for i in range(1, 12)])
    assert (found.p10, found.p50, found.p90) == pytest.approx((0.002, 0.006, 0.010))
    assert found.turns == 11
    assert Times(p10=1, p50=2, p90=10, turns=3).mean == pytest.approx(0.3 + 0.8 + 3)
    assert Times.of([0.5]) == Times(p10=0.5, p50=0.5, p90=0.5, turns=1)


@pytest.mark.parametrize(
    ("world", "size", "names"),
    [
        (4, 1, ("star_all_reduce", "tree_all_reduce")),
        (4, SMALL, ("star_all_reduce", "tree_all_reduce")),
        (4, 31 << 10, ("star_all_reduce", "tree_all_reduce")),
        (4, 33 << 10, ("tree_all_reduce",)),
        (4, 4 * LARGE, ("tree_all_reduce",)),
        (4, 4 * LARGE + 1, ()),
        (3, SMALL, ()),
        (8, SMALL, ()),
    ],
)
def test_the_nearest_size_by_ratio_decides(world: int, size: int, names: tuple[str, ...]) -> None:
    assert table().choose(world, size).names == names


def test_a_lucky_median_does_not_decide() -> None:
    found = table()
    row = found.rows[0]
    lucky = Times(p10=0.0009, p50=0.001, p90=0.009, turns=20)
    rows = (row.model_copy(update={"times": {**row.times, "tree_all_reduce": lucky}}),)
    choice = found.model_copy(update={"rows": rows}).choose(4, SMALL)
    assert choice.names == ("star_all_reduce", "tree_all_reduce"), "means of 2 and 3.37 ms"


@pytest.mark.parametrize(
    ("world", "size", "why"),
    [
        (4, 8, "`star_all_reduce`: 5.0 times as fast at 1024 bytes"),
        (3, 8, "`all_reduce` itself: nothing was clearly faster at 1024 bytes"),
        (8, 8, "`all_reduce` itself: 8 ranks were not measured, but 3, 4"),
        (
            4,
            1 << 30,
            "`all_reduce` itself: 1073741824 bytes are far more than were measured (1048576)",
        ),
    ],
)
def test_it_says_why(world: int, size: int, why: str) -> None:
    assert table().choose(world, size).why == why


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    table().write(tmp_path / "t.json")
    assert Table.read(tmp_path / "t.json") == table()
    assert json.loads((tmp_path / "t.json").read_text())["version"] == 1
    with pytest.raises(CommlangError, match=r"^cannot write .*/none/t\.json: No such file"):
        table().write(tmp_path / "none" / "t.json")


def _edited(*path: str | int, value: Any) -> str:
    data: Any = json.loads(table().model_dump_json())
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(data)


OWN = ("rows", 0, "times", "all_reduce")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid JSON"),
        ("[]", "Input should be an object"),
        ("{}", "torch: Field required"),
        (_edited("version", value=2), "version: Input should be 1"),
        (_edited("more", value=2), "more: Extra inputs are not permitted"),
        (_edited("rows", 1, "bytes", value=0), "rows.1.bytes: Input should be greater than or"),
        (_edited(*OWN, "p50", value=-1), "rows.0.times.all_reduce.p50: Input should be greater"),
        (_edited(*OWN, "p50", value=1e999), "p50: Input should be a finite number"),
        (_edited("rows", 2, "times", value={}), "row 2 has no times of `all_reduce` itself"),
    ],
)
def test_what_is_no_table_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        Table.read(tmp_path / "t.json")
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/t.json is no table of `commlang tune`, version 1: ")
    assert message in said


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory; `commlang tune` writes"):
        Table.read(tmp_path / "none.json")
    (tmp_path / "large").write_bytes(b" " * ((4 << 20) + 1))
    with pytest.raises(UsageError, match="large is larger than 4 MiB; not a table"):
        Table.read(tmp_path / "large")


def test_other_backends_and_torches_do_not_match() -> None:
    found = table("commlang_mpi", "2.13.0+cpu")
    assert found.mismatch("mpi", "2.13.1") is None
    assert found.mismatch(None, "2.13.1") is None
    assert found.mismatch("gloo", "2.13.0") == "it was measured on commlang_mpi, and this is gloo"
    assert found.mismatch("mpi", "2.14.0") == (
        "it was measured with torch 2.13.0+cpu, and this is 2.14.0"
    )


def test_people_see_what_is_taken() -> None:
    lines = render(table(torch="2.13.0+cpu")).splitlines()
    assert lines[0] == ("all_reduce of float32 on gloo, cpu; torch 2.13.0+cpu, made up, 2 CPUs")
    assert [line.split() for line in lines[3:]] == [
        ["ranks", "bytes", "pattern", "p10", "p50", "p90", "gain"],
        ["4", "1", "KiB", "all_reduce", *["10", "ms"] * 3, "1.00x"],
        ["star_all_reduce", "*", *["2", "ms"] * 3, "5.00x"],
        ["4", "1", "MiB", "all_reduce", *["10", "ms"] * 3, "1.00x"],
        ["tree_all_reduce", "*", *["8", "ms"] * 3, "1.25x"],
        ["3", "1", "KiB", "all_reduce", "*", *["10", "ms"] * 3, "1.00x"],
    ]
    everything = render(table(), everything=True).splitlines()
    assert len(everything) == 4 + 9
    assert [line.split()[0] for line in everything[5:7]] == ["star_all_reduce", "tree_all_reduce"]
