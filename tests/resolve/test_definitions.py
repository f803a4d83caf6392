"""Findings about parameters, externs and the file as a whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from commlang.resolve.check import check_module
from commlang.resolve.modules import load_module
from commlang.source import Source

Findings = Callable[[str], list[str]]
PASS = "    pass\n"


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("x: float32[n], n = 1Ki, op = sum, b: bool = true, k: int = n, o: op = max", []),
        ("sink = world - 1, s = sum(c[rank, d] for d in ranks), c: int[world, world]", []),
        ("x: float32[n + 1, share(n, world, rank)], n = 4", []),
        ("a, a", ["1:14 CL105 `a` is bound already in this block, as a parameter"]),
        ("x: float32[2 * m]", ["1:26 CL101 `m` is not defined"]),
        ("x: long[n]", ["1:14 CL103 `long` is no dtype | write `int64`"]),
        ("x: float", ["1:14 CL103 `float` is no dtype | write `float32`"]),
        ("x: bolo", ["1:14 CL103 `bolo` is no dtype | did you mean `bool`?"]),
        (
            "x: float32[0.5]",
            ["1:22 CL103 a dimension needs an int, not `0.5`"],
        ),
        (
            "x: float32[n] = 3, n = 4",
            [
                "1:27 CL103 tensor `x` cannot have a default"
                " | the caller gives it, or commlang allocates it"
            ],
        ),
        ("k: int = 1.5", ["1:20 CL103 the default of `k` needs an int, not `1.5`"]),
        ("b: bool = 1", ["1:21 CL103 the default of `b` needs a bool, not an int"]),
        (
            "o: op = 1",
            [
                "1:19 CL103 the default of `o` needs a reduce op, not an int"
                " | the ops are sum, avg, product, min, max, band, bor, bxor, premul_sum"
            ],
        ),
        ("c: int[w, w] = 4", ["1:26 CL103 the default of `c` needs a table of ints, not an int"]),
        (
            "x: read float32[4]",
            [
                "1:11 CL104 `read` belongs to externs: what a pattern does with `x` is known"
                " | drop `read`"
            ],
        ),
    ],
)
def test_parameters_of_a_pattern(params: str, expected: list[str], findings: Findings) -> None:
    found = findings(f"pattern p({params}):\n{PASS}")
    short = [line.replace(" | a block binds a name once; choose another", "") for line in found]
    assert short == expected


def test_a_repeated_name_shows_where_it_was_bound_first() -> None:
    (finding,) = check_module(load_module(Source(f"pattern p(a, b, a):\n{PASS}")))
    first = finding.labels[1]
    assert (first.where(), first.text) == ("<text>:1:11", "bound here first")


def test_sizes_that_only_a_shape_names_are_ints_of_the_body(findings: Findings) -> None:
    text = "pattern p(x: float32[rows, cols], c: int[w, w]):\n"
    body = "    for i in range(rows * cols - w):\n        send(x, dst=i)\n"
    assert findings(text + body) == []


def test_the_type_of_a_default_is_that_of_the_parameter(findings: Findings) -> None:
    text = "pattern p(x: float32[n], n = 4, half = n // 2, o = max):\n"
    body = "    send(x, dst=half)\n    all_reduce(x, op=o)\n    all_reduce(x, op=half)\n"
    assert findings(text + body) == [
        "4:22 CL103 `op` of `all_reduce` needs a reduce op, not an int"
        " | the ops are sum, avg, product, min, max, band, bor, bxor, premul_sum"
    ]


def test_externs_say_what_they_do_with_tensors(findings: Findings) -> None:
    text = "extern f(a: read float32[n], b: float32[n], k: write int, t: update int[n, n])\n"
    assert findings(text) == [
        "1:30 CL104 an extern must say what it does with tensor `b`"
        " | write `b: read …`, `b: write …` or `b: update …`",
        "1:45 CL103 `write` needs a tensor, not an int",
        "1:59 CL103 `update` needs a tensor, not a table",
    ]


def test_the_body_of_an_extern(findings: Findings) -> None:
    head = "extern f(q: read float32[s, h], acc: update float32[s, h], on: bool = false):\n"
    clean = "    cost 4 * s * h / 200T\n    require s > h\n    assume acc == old(acc) + 2 * q\n"
    assert findings(head + clean) == []
    assert findings(head + "    cost q\n    require old(q) == q\n    assume acc\n") == [
        "2:10 CL103 `cost` needs a number, not a tensor",
        "3:13 CL104 `old(…)` speaks of tensors' contents, which only `ensure` and `assume` can",
        "3:23 CL103 `==` cannot compare a tensor: contents are known only during the run"
        " | state what holds of contents in `ensure`",
        "4:12 CL103 `assume` needs true or false, not a tensor | say what it holds: `acc == …`",
    ]


def test_definitions_of_one_name(findings: Findings) -> None:
    text = f"pattern p():\n{PASS}extern q(k)\npattern q():\n{PASS}pattern p():\n{PASS}"
    assert findings(text) == [
        "4:9 CL105 `q` is already defined in this file",
        "6:9 CL105 `p` is already defined in this file",
    ]


def test_a_pattern_may_call_itself_and_later_ones(findings: Findings) -> None:
    text = "pattern a(x: float32[n]):\n    a(x)\n    b(x)\npattern b(x: float32[n]):\n    a(x)\n"
    assert findings(text) == []


def test_a_pattern_named_like_an_operation_is_the_one_called(findings: Findings) -> None:
    text = "pattern send(x: float32[n], to):\n    pass\npattern p(x: float32[n]):\n"
    assert findings(text + "    send(x, to=1)\n") == []
    assert findings(text + "    send(x, dst=1)\n") == [
        "4:13 CL102 `send` has no argument `dst` | `send` takes (x, to, group)"
    ]


def test_a_parameter_named_group_takes_the_keyword(findings: Findings) -> None:
    text = "pattern p(group: float32[n]):\n    p(group=group)\n    p(group=3)\n"
    assert findings(text) == ["3:13 CL103 `group` of `p` needs a tensor, not an int"]


def test_findings_of_all_definitions_come_in_source_order(findings: Findings) -> None:
    text = "pattern p():\n    send(a, dst=b)\n    wait(c)\npattern q():\n    d -> e\n"
    assert [line.split(" ")[:2] for line in findings(text)] == [
        ["2:10", "CL101"],
        ["2:17", "CL101"],
        ["3:10", "CL104"],
        ["5:5", "CL101"],
        ["5:10", "CL101"],
    ]


def test_handles_are_those_of_one_pattern(findings: Findings) -> None:
    text = "pattern p(x: float32[n]):\n    h = async send(x, dst=1)\npattern q():\n    wait(h)\n"
    assert findings(text) == ["4:10 CL104 no `h = async …` in this pattern"]


def test_soft_names_stay_usable(findings: Findings) -> None:
    text = """\
pattern soft(group: float32[op], op = 1Ki, sum = 2, n = 3, mesh = 2, cost = 2us, temp = 1, like = 3,
             tag = 1, read = 2, rank_ = 3):
    let let = 1
    let wait = op + sum + cost
    all_reduce(group, op=max)
    temp x: like group[0:n]
    send(group, dst = mesh + temp)
    x[0] -> group[1]
    h = async x @ 0 -> x @ 1, tag=4
    wait(h)
"""
    assert findings(text) == []
