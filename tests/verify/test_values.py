"""Values written after `--set` and in presets."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from commlang.errors import PatternError, UsageError
from commlang.expand.values import Op
from commlang.operations import ReduceOp
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.verify import parse_settings, parse_value, preset_values
from commlang.verify.values import format_value, unset


def definition(text: str) -> Definition:
    module = load_module(Source(text, "a.cl"))
    return module.symbols[module.exported[0]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (" -3 ", -3),
        ("4Ki", 4096),
        ("2 * 3 + 1 << 2", 28),
        ("7 // 2", 3),
        ("6 / 4", Fraction(3, 2)),
        ("0.5", Fraction(1, 2)),
        ("2ms", Fraction(1, 500)),
        ("true", True),
        ("not true", False),
        ("sum", "sum"),
        ("bfloat16", "bfloat16"),
        ("premul_sum(1 / 2)", Op(ReduceOp.PREMUL_SUM, Fraction(1, 2))),
        ("[1, 2, [3]]", [1, 2, [3]]),
        ("[[s + d for d in range(2)] for s in range(2)]", [[0, 1], [1, 2]]),
        ("reversed(range(3))", [2, 1, 0]),
        ("8 if 2 > 1 else 4", 8),
        ("log2(64)", 6),
    ],
)
def test_value(text: str, value: Any) -> None:
    found = parse_value(text, "--set n")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", "--set n: `foo` is not defined; a value is made of constants"),
        ("world", "--set n: `world` is not defined; a value is made of constants"),
        ("4Kx", "--set n: `4Kx` is not a value: unknown suffix `Kx`"),
        ("1 +", "--set n: `1 +` is not a value: "),
        ('"abc"', '--set n: `"abc"`: a parameter cannot be a string'),
        ("2**100", "--set n: `2**100`: the result is too large"),
        ("1 // 0", "--set n: `1 // 0`: "),
        ("range(10**9)", "--set n: `range(10**9)`: a list of 1,000,000,000 items is too long"),
        ("[i for i in range(10**8)]", "--set n: `[i for i in range(10**8)]`: this loop"),
        ("1\n2", "--set n: `1\n2` is not a value"),
    ],
)
def test_no_value(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_value(text, "--set n")
    assert str(caught.value).startswith(message)


def test_settings() -> None:
    assert parse_settings(["n=4Ki", "op = max", "flag=1==1"]) == {
        "n": 4096,
        "op": "max",
        "flag": True,
    }
    assert parse_settings([]) == {}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["n"], "--set n: write name=value, as in `--set n=4Ki`"),
        (["=4"], "--set =4: write name=value"),
        (["n="], "--set n=: write name=value"),
        (["a b=1"], "--set a b=1: write name=value"),
        (["n=1", "n=2"], "--set n=2: `n` is set twice"),
        (
            ["world=4"],
            "--set world=4: `world` is no parameter; the number of ranks is `--world N` of lint",
        ),
        (["rank=4"], "--set rank=4: `rank` is no parameter; it follows from the world"),
    ],
)
def test_no_settings(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_settings(texts)
    assert str(caught.value).startswith(message)


PRESETS = """\
pattern a(x: float32[n], n = 8, k = 1, op = sum):
    preset small: n = 2, op = max
    preset large: k = world // 2, world = 8, n = 4Mi
    preset loose: n = 4 * k
    preset none: world = 0
    all_reduce(x, op=op)
"""


def test_preset() -> None:
    found = definition(PRESETS)
    assert preset_values(found, "small") == (None, {"n": 2, "op": "max"})
    assert preset_values(found, "large") == (8, {"n": 4 << 20, "k": 4})
    assert preset_values(found, "large", world=6) == (6, {"n": 4 << 20, "k": 3})


def test_preset_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"`a` has no preset `lrge`; did you mean `large`\?"):
        preset_values(definition(PRESETS), "lrge")
    with pytest.raises(UsageError, match="its presets are `small`, `large`, `loose`, `none`"):
        preset_values(definition(PRESETS), "x")
    plain = definition("pattern b(x: float32[8]):\n    all_reduce(x)\n")
    with pytest.raises(UsageError, match="`b` has no preset `x`; it has none"):
        preset_values(plain, "x")


@pytest.mark.parametrize(
    ("name", "code", "where"), [("loose", "CL101", "a.cl:4:27"), ("none", "CL103", "a.cl:5:26")]
)
def test_preset_that_is_no_constant(name: str, code: str, where: str) -> None:
    with pytest.raises(PatternError) as caught:
        preset_values(definition(PRESETS), name)
    (found,) = caught.value.diagnostics
    assert (found.code, found.where()) == (code, where)


def test_unset() -> None:
    found = definition("pattern a(x: float32[n, m], k: int, m = 2):\n    all_reduce(x)\n")
    assert unset(found, {}) == ["k", "n"]
    assert unset(found, {"n": 1, "k": 2}) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1000, "1000"),
        (1024, "1Ki"),
        (256 << 20, "256Mi"),
        (3 << 40, "3Ti"),
        (300_000_000, "300M"),
        (-3, "-3"),
        (True, "true"),
        ("sum", "sum"),
        ("bfloat16", "bfloat16"),
        (Fraction(1, 2), "1/2"),
        ([[1, 2], [2048]], "[[1, 2], [2Ki]]"),
        (Op(ReduceOp.PREMUL_SUM, Fraction(1, 2)), "premul_sum(1/2)"),
    ],
)
def test_format_value(value: Any, text: str) -> None:
    assert format_value(value) == text
