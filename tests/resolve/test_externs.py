"""Externs as values: in contracts and in `let` functions that contracts call, nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.resolve.conftest import Lines

HEAD = """\
extern f(a: read float32[n], b: write float32[n], m: int)
extern two(a: read float32[n], g: update float32[n], b: write float32[n])
extern load(a: write float32[n])
extern look(a: read float32[n])
extern wide(a: read float32[n], b: write float32[n, k])
pattern main(x: float32[n], y: float32[n], z: float32[n, n], n = 8):
"""

CASES = [
    ("ensure y == f(x, 3)", []),
    ("ensure y == f(x, m=3)", []),
    ("ensure y == f(1, 3)", []),
    ("ensure y == two(x, old(y))[0]", []),
    ("ensure z[0] == f(z[1], 1) @ ranks.next", []),
    ("let stage(a, m) = f(a, m)\nensure y == stage(x, 1)", []),
    ("let part(r) = old(x) @ r\nensure y == part(0)", []),
    ("let add(a, r) = two(old(x) @ r, a)[0]\nensure y == fold(add, 0, ranks)", []),
    (
        "let y2 = f(x, 3)",
        [
            "1:10 CL104 `f` is an extern, which has no value | "
            "call it on a line of its own; its results are in its tensor arguments"
        ],
    ),
    (
        "let stage(m) = f(x, m)\nstage(1) -> y",
        ["2:1 CL104 `stage(…)` speaks of tensors' contents, which only `ensure` and `assume` can"],
    ),
    (
        "let stage(m) = f(x, m)\nlet later(m) = stage(m + 1)\nlater(1) -> y",
        ["3:1 CL104 `later(…)` speaks of tensors' contents, which only `ensure` and `assume` can"],
    ),
    (
        "ensure y == f(x)",
        ["1:13 CL102 `f` needs `m` | `f` takes (a, m)"],
    ),
    (
        "ensure y == f(x, 3, y)",
        ["1:21 CL102 `f` takes 2 positional arguments, not 3 | `f` takes (a, m)"],
    ),
    ("ensure y == f(ranks, 3)", ["1:15 CL103 `a` of `f` needs a tensor, not a group"]),
    (
        "ensure y == f(x, y)",
        [
            "1:18 CL103 `m` of `f` needs an int, not a tensor | "
            "the contents of a tensor are known only during the run"
        ],
    ),
    (
        "ensure y == load()",
        [
            "1:13 CL104 `load` reads no tensor: each call of it makes new data | "
            "a contract can call an extern that is a function of what it reads"
        ],
    ),
    ("ensure y == look(x)", ["1:13 CL104 `look` writes nothing, so that it has no value"]),
    (
        "ensure z == wide(x)",
        [
            "1:13 CL104 nothing given to `wide` here tells `k`, a size of what it writes | "
            "give the extern a parameter for it: `k: int`"
        ],
    ),
    (
        "ensure y == f(x, 1)[0, 0]",
        ["1:13 CL103 2 indices for a tensor of 1 dimension"],
    ),
    (
        "ensure y == fold(3, 0, ranks)",
        [
            "1:18 CL103 `fold` needs a `let` function of two values: what there is so far, and an "
            "item | `let f(so_far, item) = …`, then `fold(f, …, …)`"
        ],
    ),
    (
        "let g(a) = a\nensure y == fold(g, 0, ranks)",
        [
            "2:18 CL103 `fold` needs a `let` function of two values: what there is so far, and an "
            "item | `let f(so_far, item) = …`, then `fold(f, …, …)`"
        ],
    ),
    (
        "let g(a, b) = a\nensure y == fold(g, x, n)",
        [
            "2:24 CL103 `fold` needs a list, a range or a group, not an int | "
            "did you mean `range(n)`?"
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_an_extern_is_a_function_where_contracts_are(
    text: str, expected: list[str], findings: Lines
) -> None:
    inside = "".join(f"    {line}\n" for line in text.split("\n"))
    above = HEAD.count("\n")
    found: list[str] = []
    for line in findings(HEAD + inside + "    x -> y\n"):
        place, rest = line.split(" ", 1)
        row, column = map(int, place.split(":"))
        found.append(f"{row - above}:{column - 4} {rest}")
    assert found == expected
