"""`auto` plans: a table decides which pattern is planned, and never what it does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

import commlang
from commlang.errors import UsageError

from .tables import LARGE, SMALL, table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("world", "values", "pattern"),
    [
        (4, {"n": SMALL // 4}, "star_all_reduce"),
        (4, {"n": LARGE // 4}, "tree_all_reduce"),
        (4, {"n": LARGE // 8, "dtype": "float64"}, "tree_all_reduce"),
        (4, {"n": 8, "op": "max"}, "star_all_reduce"),
        (4, {"n": 8, "op": "avg"}, "main"),
        (4, {"n": 64 << 20}, "main"),
        (3, {"n": 8}, "main"),
        (8, {"n": 8}, "main"),
    ],
)
def test_size_and_world_decide(world: int, values: dict[str, Any], pattern: str) -> None:
    plan = commlang.auto(table()).plan(world, **values)
    assert plan.pattern == pattern
    assert plan.world == world
    assert {name: plan.parameters[name] for name in values} == values


def test_it_is_a_pattern() -> None:
    found = commlang.auto(table())
    assert (found.name, found.tensors) == ("auto:all_reduce", ["x"])
    assert found.parameters == ["n", "op", "dtype"]
    assert found.plan(4, tensors={"x": ("bfloat16", (100,))}).pattern == "star_all_reduce"
    assert found.plan(4, n=8, schedule="overlap").pattern == "star_all_reduce"
    assert found.program(4, n=8).name == "star_all_reduce"
    assert found.program(4, n=8, op="avg").name == "main"
    assert found.check(4, n=8) == []
    with pytest.raises(commlang.PatternError, match="has no parameter `m`"):
        found.plan(4, m=8)


def test_a_file_is_loaded_by_name(tmp_path: Path) -> None:
    table().write(tmp_path / "tuned.json")
    for found in (
        commlang.auto(tmp_path / "tuned.json"),
        commlang.load(f"auto:{tmp_path}/tuned.json"),
    ):
        assert found.plan(4, n=8).pattern == "star_all_reduce"
    with pytest.raises(UsageError, match=r"^cannot read none\.json"):
        commlang.load("auto:none.json")


def test_a_table_cannot_make_it_do_something_else() -> None:
    text = table().model_dump_json().replace("star_all_reduce", "ring_all_gather")
    edited = type(table()).from_json(text)
    with pytest.raises(UsageError, match="`ring_all_gather` cannot stand in for `all_reduce`"):
        commlang.auto(edited)


def test_another_torch_is_told_and_left_alone() -> None:
    found = commlang.auto(table(torch="1.0.0"))
    with pytest.warns(UserWarning, match=r"the table is not used: .* torch 1\.0\.0, and this is"):
        assert found.plan(4, n=8).pattern == "main"


def test_the_log_says_what_was_chosen(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "commlang.auto"):
        commlang.auto(table()).plan(4, n=8, op="avg")
    assert [record.getMessage() for record in caplog.records] == [
        "`star_all_reduce`: 5.0 times as fast at 1024 bytes",
        "`star_all_reduce` will not do: two values cannot be accumulated with `avg`",
        "`tree_all_reduce` will not do: two values cannot be accumulated with `avg`",
    ]
