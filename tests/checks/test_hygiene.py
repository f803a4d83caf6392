"""Rules on names and branches: what counts as a use, and which conditions never hold."""

from __future__ import annotations

import pytest

from commlang.checks.hygiene import check_hygiene
from commlang.checks.hygiene.truth import truth
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.syntax.parser import parse_expression


def told(body: str, params: str = "x: float32[n], n = 8") -> list[str]:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    module = load_module(Source(f"pattern main({params}):\n{lines}", "a.cl"))
    assert check_all(module) == []
    return [f"{d.code} {d.where()[5:]} {d.message}" for d in check_hygiene(module)]


@pytest.mark.parametrize(
    "body",
    [
        "temp t: like x\nx -> t",
        "temp t: like x\nif rank == 0:\n    fill(t, 1)\nelse:\n    scale(x, 2)",
        "temp _t: like x\nscale(x, 2)",
        "temp t: like x\ntemp u: like t\nx -> u",
        "let k = 2\nh[k] = async all_reduce(x)\nwait(h[k])",
        "let k = 2\nfor i in range(k):\n    scale(x, i)",
        "let k = 2\nlet f(i) = i + k\nscale(x, f(1))",
        "let k = 2\nensure x[k] == old(x)[k]\nscale(x, 1)",
        "group g = ranks\nensure x == sum(old(x) @ r for r in g)\nall_reduce(x)",
        "mesh a = 2, b = 2\nall_reduce(x, group=b)",
        "let x2 = x\nscale([x2 for i in range(2)][0], 2)",
    ],
)
def test_a_name_that_is_used_somewhere_is_used(body: str) -> None:
    assert told(body) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("temp t: like x\nscale(x, 2)", ["CL501 2:10 temp `t` is never used"]),
        (
            "for i in range(2):\n    temp t: like x\n    scale(x, i)",
            ["CL501 3:14 temp `t` is never used"],
        ),
        # The variable of the list hides the `let`.
        (
            "let k = 2\nscale(x, sum(k for k in range(3)))",
            ["CL503 2:9 `let` `k` is never used"],
        ),
        ("let f(i) = i\nscale(x, 2)", ["CL503 2:9 `let` function `f` is never used"]),
        ("group g = ranks\nall_reduce(x)", ["CL503 2:11 group `g` is never used"]),
        ("mesh a = 2, b = 2\nall_reduce(x)", ["CL503 2:10 no axis of this mesh is used"]),
    ],
)
def test_what_is_never_used(body: str, expected: list[str]) -> None:
    assert told(body) == expected


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("x: float32[n], n = 8", []),
        ("x: float32[n], kind = float32, n = 8", ["CL502 1:29"]),
        ("x: kind[n], kind = float32, n = 8", []),
        ("x: float32[n], y: float32[n], n = 8", ["CL502 1:29"]),
        ("x: float32[n], _y: float32[n], n = 8", []),
        ("x: float32[n], m = 4, n = 2 * m", []),
    ],
)
def test_parameters(params: str, expected: list[str]) -> None:
    assert [line.split(" parameter")[0] for line in told("scale(x, 2)", params)] == expected


def test_a_pattern_that_is_to_be_written_may_have_any_parameters() -> None:
    assert told("pass") == []
    assert told("require world > 1\npass") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "let k = 1\nfor k in range(2):\n    scale(x, k)\nscale(x, k)",
            ["CL505 3:9 loop variable `k` hides the `let` of that name"],
        ),
        (
            "for n in range(2):\n    scale(x, n)",
            ["CL505 2:9 loop variable `n` hides the parameter of that name"],
        ),
        ("let sum = 1\nscale(x, sum)", ["CL505 2:9 `let` `sum` hides the built-in of that name"]),
        ("for i in range(2):\n    scale(x, i)\nfor i in range(2):\n    scale(x, i)", []),
        ("for i in range(2):\n    scale(x, sum(i for i in range(2)) + i)", []),
    ],
)
def test_names_that_hide_others(body: str, expected: list[str]) -> None:
    assert told(body) == expected


ALWAYS = (
    "true",
    "rank >= 0",
    "rank < world",
    "world > 0",
    "0 <= rank < world",
    "rank - world <= -1",
    "2 * rank < 2 * world",
    "rank != world",
    "not rank == -1",
    "rank == 3 or world >= 1",
    "-rank <= 0",
    "rank == rank",
    "rank + 1 <= world",
)
NEVER = (
    "false",
    "rank == world",
    "rank > world - 1",
    "rank < 0",
    "world < 1",
    "rank == 3 and rank < 0",
    "1 > 2",
    "rank + 1 > world",
    "not (rank < world)",
    "world == rank",
    "(rank) * 3 >= world * 3",
    "0 <= rank < 0",
)
DEPENDS = (
    "rank == 5",
    "rank == 0",
    "rank != 0",
    "world > 1",
    "rank > world - 2",
    "2 * rank < world",
    "rank % 2 == 0",
    "rank < k",
    "rank in ranks",
    "rank == 0 or rank == 1",
    "rank * rank < 0",
    "rank == world - 1",
)


@pytest.mark.parametrize("text", ALWAYS)
def test_a_condition_that_always_holds(text: str) -> None:
    assert truth(parse_expression(text, "it")[1]) is True


@pytest.mark.parametrize("text", NEVER)
def test_a_condition_that_never_holds(text: str) -> None:
    assert truth(parse_expression(text, "it")[1]) is False


@pytest.mark.parametrize("text", DEPENDS)
def test_a_condition_that_depends(text: str) -> None:
    assert truth(parse_expression(text, "it")[1]) is None


@pytest.mark.parametrize("text", [*ALWAYS, *NEVER])
def test_what_is_told_of_a_condition_is_so_in_small_worlds(text: str) -> None:
    code = compile(text.replace("true", "True").replace("false", "False"), "it", "eval")
    places = [(rank, world) for world in range(1, 9) for rank in range(world)]
    values = {eval(code, {"rank": rank, "world": world}) for rank, world in places}
    assert values == {text in ALWAYS}


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("if rank == world:\n    scale(x, 2)", [2]),
        ("if rank < world:\n    scale(x, 2)\nelse:\n    scale(x, 3)", [4]),
        (
            "if rank == 0:\n    scale(x, 2)\nelif n == 1:\n    pass\nelif rank  ==  0:\n    pass",
            [6],
        ),
        ("if n > 3:\n    if 1 > 2:\n        scale(x, 2)", [3]),
        ("if rank == 7:\n    scale(x, 2)\nelif rank == 9:\n    scale(x, 3)", []),
    ],
)
def test_dead_branches(body: str, lines: list[int]) -> None:
    assert [(line[:5], int(line[6:].split(":")[0])) for line in told(body)] == [
        ("CL504", line) for line in lines
    ]
