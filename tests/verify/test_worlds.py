"""The number of ranks when nobody says."""

from __future__ import annotations

from typing import Any

import pytest

from commlang.errors import PatternError
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.verify import default_world


def world(params: str, body: str, **values: Any) -> int:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    module = load_module(Source(f"pattern a({params}):\n{lines}    all_reduce(x)\n", "a.cl"))
    return default_world(module.symbols["a"], values)


X = "x: float32[8]"


@pytest.mark.parametrize(
    ("params", "body", "values", "expected"),
    [
        (X, "pass", {}, 4),
        (X, "preset p: world = 8", {}, 4),
        (X, "require world >= 2", {}, 4),
        (X, "require world > 4", {}, 5),
        (X, "require world % 3 == 0", {}, 3),
        (X, "require world % 2 == 1", {}, 3),
        (X, "require world % 24 == 0", {}, 24),
        (X, "require world == 1", {}, 1),
        (f"{X}, node = 2", "require world % node == 0", {"node": 3}, 3),
        # a mesh that does not depend on the world
        (f"{X}, pp = 2, tp = 3", "mesh a = pp, b = tp", {}, 6),
        (f"{X}, pp = 2, tp = 3", "mesh a = pp, b = tp", {"tp": 5}, 10),
        (f"{X}, pp = 2", "let q = pp + 1\nlet s = q * 2\nmesh a = s", {}, 6),
        (f"{X}, pp = 2, tp = pp * 4", "mesh a = tp", {}, 8),
        # a mesh that does
        (f"{X}, node = 2", "mesh a = world // node, b = node", {}, 4),
        (f"{X}, node = 3", "mesh a = world // node, b = node", {}, 3),
        (f"{X}, pp = 2, dp = world // pp", "mesh a = pp, b = dp", {}, 4),
        (f"{X}, pp = 2, dp = world // pp", "mesh a = pp, b = dp", {"dp": 5}, 10),
        (f"{X}, pp = 3", "let q = world // pp\nmesh a = pp, b = q", {}, 3),
        (f"{X}, pp = 2", "let size(k) = k * 2\nmesh a = size(pp)", {}, 4),
        # parameters
        (f"{X}, n = 12 // (world - 4)", "pass", {}, 2),
        ("x: float32[world - 5]", "pass", {}, 5),
    ],
)
def test_default(params: str, body: str, values: dict[str, Any], expected: int) -> None:
    assert world(params, body, **values) == expected


def test_no_world_will_do() -> None:
    with pytest.raises(PatternError) as caught:
        world(X, 'require world == 100, "made for a cluster"')
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("CL124", "required: made for a cluster")
    assert found.where() == "a.cl:2:5"
    assert found.notes == ("said of a world of 4; none of 1 to 64 ranks will do",)
    assert found.help == "choose another world"


def test_fault_that_no_world_mends_is_left_to_the_check() -> None:
    assert world(f"{X}, k: int", "pass") == 4
    assert world(X, "let y = x[9]") == 4
