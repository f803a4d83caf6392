"""What contracts mean on data: whose values, of which time, and how a failure is told."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from commlang.errors import PatternError
from commlang.execute import contract_data
from commlang.execute.contract import (
    ContractResult,
    Failure,
    check_contracts,
    check_definition,
    needs_final,
)
from commlang.execute.fill import Filler
from commlang.plan import make_plan
from commlang.resolve.check import check_all
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source

Data = Mapping[tuple[int, str], torch.Tensor]


def definition(ensure: str, params: str = "", body: str = "") -> Definition:
    """A pattern with tensors x and y: int32[6], z: int32[2, 3], a contract and bindings."""
    known = "x: int32[6], y: int32[6], z: int32[2, 3]"
    lines = [f"pattern p({known}{params and ', ' + params}):"]
    lines += [f"    {line}" for line in body.splitlines()]
    lines += [f"    ensure {line}" for line in ensure.splitlines()]
    module = load_module(Source("\n".join(lines) + "\n", "p.cl"))
    assert [d.render() for d in check_all(module)] == []
    return module.symbols["p"]


def numbers(world: int, base: int = 0) -> dict[tuple[int, str], torch.Tensor]:
    """x, y and z of every rank: element i of x on rank r is 100 r + i, of y 10 more, of z 20."""
    return {
        (rank, name): torch.arange(6, dtype=torch.int32).view(shape) + 100 * rank + more + base
        for rank in range(world)
        for name, shape, more in (("x", (6,), 0), ("y", (6,), 10), ("z", (2, 3), 20))
    }


def check(
    ensure: str,
    world: int = 4,
    old: Data | None = None,
    final: Data | None = None,
    *,
    params: str = "",
    body: str = "",
    **values: Any,
) -> list[ContractResult]:
    """The results on all ranks; at the end, everything is 1,000 more than at entry by default."""
    old = numbers(world) if old is None else old
    final = numbers(world, 1000) if final is None else final
    results: list[ContractResult] = []
    for rank in range(world):
        results += check_definition(
            definition(ensure, params, body),
            world,
            values,
            rank=rank,
            old=lambda r, n: old[r, n],
            final=lambda r, n: final[r, n],
        )
    return results


def holds(*args: Any, **kwargs: Any) -> list[bool]:
    return [result.ok for result in check(*args, **kwargs)]


TRUE = [
    "x == old(x) + 1000",
    "old(y) == old(x) + 10",
    "x != y",
    "x > old(y)",
    "x + 10 >= y and y <= x + 10",
    "x @ 2 == x + 100 * (2 - rank)",
    "old(x) @ 2 == old(x @ 2)",
    "x @ ranks.next == x + 100 if rank + 1 < world else x @ 0 == x - 100 * rank",
    "rank == 0 or x == (x @ (rank - 1)) + 100",
    "not x == y",
    "2 * x - y == x - 10",
    "-x + x == 0",
    "abs(-x) == x and ~x == -x - 1",
    "min(x, y, old(x)) == old(x) and max(x, old(y)) == x",
    "z[1, 2] == x[5] + 20 and z[-1][0:2] == x[3:5] + 20",
    "z.flatten() == x + 20 and x.reshape(2, 3) == z - 20",
    "z.transpose(0, 1)[1] == concat(x[i:i + 1] + 20 for i in [1, 4])",
    "z.transpose(0, 1).flatten()[1] == x[3] + 20",
    "z.chunks(2, dim=1)[0][0] == x[0:2] + 20",
    "concat(x.chunks(4)) == x and x.chunks(4)[1:3] == x[2:5]",
    "x[0:6:2] == concat(x[i:i + 1] for i in range(0, 6, 2))",
    "len(x) == x.numel and z.shape[1] == 3 and z.ndim == 2",
    "sum(old(x) @ r for r in ranks) == world * old(x) + 100 * (6 - 4 * rank)",
    "sum(x @ r for r in ranks if r != rank) + x == sum(x @ r for r in ranks)",
    "sum([x @ r for r in ranks][0:rank + 1]) == sum(x @ r for r in range(rank + 1))",
    "avg(old(x) @ r for r in ranks[0:3]) == old(x) @ 1",
    "max(old(x) @ r for r in ranks) == old(x) @ (world - 1)",
    "min(old(x) @ r for r in reversed(ranks)) == old(x) @ 0",
    "product(x[i] for i in range(2)) == x[0] * x[1]",
    "bxor([x, y, x]) == y and bxor(x for i in [0, 1, 2]) == x",
    "(x | y) == bor([x, y]) and (x & y) == band([x, y])",
    "(x ^ y) == bor([x, y]) - band([x, y])",
    "concat(sum(x @ r for r in ranks)[i:i + 1] for i in range(6)) == sum(x @ r for r in ranks)",
    "(sum(x @ r for r in ranks))[rank] == sum((x @ r)[rank] for r in ranks)",
    "product(r + 1 for r in ranks) == 24 and avg(r for r in ranks) == 3 / 2",
    "bxor(r for r in ranks) == 0 and sum(r for r in ranks) == 6",
    "all(x == (x @ r) + 100 * (rank - r) for r in ranks)",
    "any(x == x @ r for r in ranks)",
    "x[i] == old(x)[i] + 1000 for i in range(6)",
    "x[i] == x[j] + (i - j) for i in range(rank) for j in range(i)",
    "x == (old(x) @ r) + 1000 + 100 * (rank - r) for r in ranks if r > rank",
    "x == y for i in range(0)",
    "a == b + 1 for a, b in zip([x, y], [old(x) + 999, old(y) + 999])",
]


@pytest.mark.parametrize("ensure", TRUE)
def test_true_contracts_hold_on_every_rank(ensure: str) -> None:
    assert [str(r.failure) for r in check(ensure) if not r.ok] == []


BODY = """mesh row = 2, column = 2
group odd = [r for r in ranks if r % 2 == 1]
let mine = x.chunks(world)[rank]
let part(r, t) = t.chunks(world)[r]
let half = [x.chunks(2), y.chunks(2)]
let left = ranks.prev"""

BOUND = [
    # names that the pattern binds are those of the rank after `@`
    "mine @ 2 == x[4:5] + 100 * (2 - rank)",
    "mine @ left == (x @ left).chunks(world)[left]",
    "old(mine) + 1000 == mine",
    "concat(mine @ r for r in ranks[0:2]) == concat([(x @ 0)[0:2], (x @ 1)[2:4]])",
    # a function's arguments too
    "part(1, y) @ 3 == y[2:4] + 100 * (3 - rank)",
    "half[1][0] == y[0:3] and old(half[0][1]) == old(x)[3:6]",
    # meshes and groups
    "x @ row.next == x + 200 if row.index == 0 else x @ row[0] == x - 200",
    "row.index * 2 + column.index == rank and row[1] == 2 + column.index",
    "sum(x @ r for r in row) == 2 * x + (200 if row.index == 0 else -200)",
    "sum(x @ r for r in odd) == 2 * (x @ 2)",
    "x @ odd.next == x + 200 - 400 * odd.index if rank in odd else true",
    "counts[rank, 1] == 3 * rank + 1 and x[counts[rank, 1] % 6] == x[0] + counts[rank, 1] % 6",
    "x == op(x @ r for r in odd) + 100 * (rank - 3)",
]


@pytest.mark.parametrize("ensure", BOUND)
def test_names_of_the_pattern(ensure: str) -> None:
    table = [[3 * s + d for d in range(4)] for s in range(4)]
    params = "op = max, counts: int[world, world] = [[0 for d in ranks] for s in ranks]"
    results = check(ensure, params=params, body=BODY, counts=table)
    assert [str(r.failure) for r in results if not r.ok] == []


def test_which_ranks_fail() -> None:
    assert holds("x == old(x) @ rank") == [False] * 4
    assert holds("rank < 2") == [True, True, False, False]
    assert holds("x < 1200") == [True, True, False, False]
    assert holds("x @ 3 == x") == [False, False, False, True]
    assert holds("x @ r == x for r in [rank, 1]") == [False, True, False, False]


def test_each_contract_has_its_own_result() -> None:
    results = check("x == y\ny == y\nx[0] == 1000", world=2)
    assert [(r.rank, r.text, r.where, r.ok) for r in results[:3]] == [
        (0, "ensure x == y", "p.cl:2:5", False),
        (0, "ensure y == y", "p.cl:3:5", True),
        (0, "ensure x[0] == 1000", "p.cl:4:5", True),
    ]
    assert [r.ok for r in results[3:]] == [False, True, False]


# ------------------------------------------------------------------------ failures


def only(ensure: str, spoil: Callable[[dict[tuple[int, str], torch.Tensor]], None]) -> Failure:
    """The one failure among four ranks once some data are spoilt."""
    final = numbers(4, 1000)
    spoil(final)
    failures = [r.failure for r in check(ensure, final=final) if r.failure]
    assert len(failures) == 1, failures
    return failures[0]


def spoil_z(final: dict[tuple[int, str], torch.Tensor]) -> None:
    final[2, "z"][1, 1:] = 7


@pytest.mark.parametrize(
    ("ensure", "rest", "text"),
    [
        ("z == old(z) + 1000", (2, 6), "; 2 of 6 elements are wrong"),
        ("old(z) + 1000 == z", (2, 6), "; 2 of 6 elements are wrong"),
        ("z[1] == old(z)[1] + 1000", (2, 3), "; 2 of 3 elements are wrong"),
        (
            "z[i] == old(z)[i] + 1000 for i in range(2)",
            (2, 3),
            " (i = 1); 2 of 3 elements are wrong",
        ),
        ("z.transpose(0, 1)[1] == old(z)[:, 1] + 1000", (1, 2), "; 1 of 2 elements are wrong"),
        ("z.flatten() == old(x) + 1020", (2, 6), "; 2 of 6 elements are wrong"),
        (
            "z[i, j] == old(z)[i, j] + 1000 for i in range(2) for j in range(3)",
            (2, 2),
            " (i = 1, j = 1); 2 of 2 elements are wrong",
        ),
    ],
)
def test_the_first_wrong_element(ensure: str, rest: tuple[int, int], text: str) -> None:
    failure = only(ensure, spoil_z)
    assert (failure.rank, failure.tensor, failure.index) == (2, "z", (1, 1))
    assert (failure.got, failure.expected) == (7, 1224)
    assert (failure.wrong, failure.elements) == rest
    assert str(failure) == f"rank 2: z[1, 1] is 7, expected 1224{text}"


def test_a_failure_names_the_rank_whose_data_are_wrong() -> None:
    final = numbers(3, 1000)
    final[1, "x"][4] = -5
    results = check("x @ 1 == (old(x) @ 1) + 1000", world=3, final=final)
    assert [r.failure.rank if r.failure else None for r in results] == [1, 1, 1]
    assert [r.rank for r in results] == [0, 1, 2]
    assert str(results[0].failure).startswith("rank 1: x[4] is -5, expected 1104; 1 of 6")


def test_what_is_computed_has_an_index_but_no_name() -> None:
    failure = only("x + 1 == old(x) + 1001", lambda final: final[3, "x"].__setitem__(2, 0))
    assert (failure.tensor, failure.index, failure.got, failure.expected) == (None, (2,), 1, 1303)
    assert str(failure) == "rank 3: the value at [2] is 1, expected 1303; 1 of 6 elements are wrong"


def test_conditions_without_data_and_other_comparisons() -> None:
    assert (
        str(check("rank < 3 for i in [5]")[3].failure) == "rank 3: the condition is false (i = 5)"
    )
    assert str(check("x[2] < 1302")[3].failure) == (
        "rank 3: x[2] is 1302, expected < 1302; 1 of 1 elements are wrong"
    )
    assert str(check("1002 > x[2]")[0].failure) == (
        "rank 0: x[2] is 1002, expected < 1002; 1 of 1 elements are wrong"
    )
    assert str(check("x != old(x) + 1000")[0].failure) == (
        "rank 0: x[0] is 1000, expected != 1000; 6 of 6 elements are wrong"
    )


def test_only_comparisons_of_a_false_branch_are_told() -> None:
    failure = check("x == y or z == 2 * z or rank == 7")[0].failure
    assert failure is not None
    assert (failure.tensor, failure.wrong, failure.elements) == ("x", 12, 12)
    assert holds("(x == y or x == x) and y == y") == [True] * 4
    failure = check("(x == y or x == x) and (y == x if rank == 0 else true)")[0].failure
    assert failure is not None
    assert failure.wrong == 12


# --------------------------------------------------------------------------- dtypes


def one(dtype: str, left: Any, right: Any, ensure: str = "x == old(x) @ 1") -> ContractResult:
    """The result on rank 0 with x at the end on rank 0, and at entry on rank 1, as given."""
    kind: torch.dtype = getattr(torch, dtype)
    text = f"pattern p(x: {dtype}[{len(left)}], w: float32[{len(left)}]):\n    ensure {ensure}\n"
    found = load_module(Source(text)).symbols["p"]
    start = torch.tensor(right, dtype=torch.float32 if "w" in ensure else kind)
    final = torch.tensor(left, dtype=kind)
    (result,) = check_definition(found, 2, rank=0, old=lambda r, n: start, final=lambda r, n: final)
    return result


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "float8_e4m3fn", "bfloat16",
     "float64", "complex64", "complex128"],
)  # fmt: skip
def test_every_dtype_is_compared(dtype: str) -> None:
    assert one(dtype, [1, 0, 1], [1, 0, 1]).ok
    failure = one(dtype, [1, 0, 1], [1, 0, 0]).failure
    assert failure is not None
    assert (failure.index, failure.got, failure.expected, failure.wrong) == ((2,), 1, 0, 1)


def test_equality_is_that_of_bits() -> None:
    nan = float("nan")
    assert one("float32", [nan, 1.0], [nan, 1.0]).ok
    assert not one("float32", [0.0, 1.0], [-0.0, 1.0]).ok
    assert not one("complex128", [1j], [2j]).ok


def test_what_is_expected_is_rounded_to_the_dtype_once() -> None:
    assert one("bfloat16", [1 / 3], [1.0], "x == old(x) / 3").ok
    assert one("bfloat16", [0.5], [0.25], "x == 0.5 * (old(x) @ 1) + 3 / 8").ok
    assert one("bfloat16", [257.0], [257.0], "x == old(w) @ 1").ok  # 257 is 256 in bfloat16
    assert one("float32", [10.0], [4.0], "x == premul_sum(5 / 4)(old(x) @ r for r in ranks)").ok
    half = "x == (0.5 if i == 0 else 2 / 1) * (old(x) @ i) - (0.25 if i == 0 else 7 / 4)"
    assert one("float32", [0.25], [1.0], f"{half} for i in ranks").ok
    assert one("int8", [-3], [-7], "x == (old(x) @ 0) / 2").ok
    assert one("bool", [True, False], [True, False], "x == sum(old(x) @ r for r in ranks)").ok


# --------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("ensure", "where", "message"),
    [
        ("x == z", "3:12", "the contract sets shape [6] against shape [2, 3]"),
        ("x + z == x", "3:12", "the contract sets shape [6] against shape [2, 3]"),
        ("x == y @ (rank + 1)", "3:21", "`@` names a rank that is none of the ranks 0 to 3"),
        ("sum(x[0:r + 1] for r in ranks) == 0", "3:12", "sets shape [1] against shape [2]"),
        ("x == sum(x @ r for r in range(rank))", "3:17", "the list is empty"),
        ("x == concat(x for r in range(rank))", "3:17", "the list is empty"),
        ("x == concat([x, z])", "3:17", "the contract sets shape [] against shape [3]"),
        ("x == inbox", "2:5", "a contract reads the temp `inbox`"),
        ("c @ 0 == 1 for c in x.chunks(2)", "3:12", "the tensor `c` of a loop inside"),
        ("old(c) == 1 for c, i in zip(x.chunks(2), [0, 1])", "3:16", "the tensor `c` of a loop"),
        ("x[rank + 4] == x[4]", "3:12", "index 6 is out of range for dim 0 of length 6"),
        ("x // 2 == x", "3:12", "`//` does not combine tensors"),
        ("x * 0.5 == x", "3:12", "`*` of a int32 tensor and a fraction"),
        ("sum(x) == 6", "3:12", "`sum` of one tensor, which is no list"),
        ("concat(ranks) == x", "3:12", "`concat` needs a list of tensors, not a group"),
        ("x == concat([x, w])", "3:17", "the list holds tensors of int32 and of float32"),
        ("x + w == x", "3:12", "`+` combines int32 with float32"),
        ("avg(r for r in range(rank)) == 0", "3:12", "`avg` of numbers needs a list of one length"),
    ],
)
def test_contracts_without_a_meaning(ensure: str, where: str, message: str) -> None:
    body = "temp inbox: int32[6]"
    data = numbers(4) | {(r, "w"): torch.zeros(6) for r in range(4)}
    with pytest.raises(PatternError) as caught:
        check(ensure, old=data, final=data, params="w: float32[6]", body=body)
    (found,) = caught.value.diagnostics
    assert message in found.message
    assert found.where() == f"p.cl:{where}"


# ------------------------------------------------------------------- what is asked for


@pytest.mark.parametrize(
    ("ensure", "names"),
    [
        ("x == old(y) @ 1", []),
        ("x == sum(old(x) @ r for r in ranks)", []),
        ("x == y @ 1", ["y"]),
        ("x @ 1 == old(x) @ 0 and y == x", ["x"]),
        ("old(x @ 1) == x", []),
        ("all(z == z @ r for r in ranks)", ["z"]),
        ("x == mine @ 1", ["x"]),
        ("x == old(mine) @ 1", []),
        ("mine == both(1)[0]", []),
        ("x == both(1)[0] @ 2", ["y"]),
        ("x[0] == (x @ 1)[r] for r in ranks if y @ r == y", ["x", "y"]),
        ("x == y @ (rank + 1) % world", ["y"]),
        ("1 == y @ r for y in ranks for r in ranks", []),
    ],
)
def test_what_must_be_sent_to_other_ranks(ensure: str, names: list[str]) -> None:
    body = "let mine = x[rank:rank + 1]\nlet other = y\nlet both(z) = [other, other]"
    found = definition(ensure, body=body)
    assert needs_final(found) == frozenset(names)


def test_nothing_else_is_asked_for() -> None:
    """A rank asks for its own tensors, for what `needs_final` says, and for what is read."""
    asked: set[tuple[str, int, str]] = set()
    data = numbers(3)

    def fetch(time: str) -> Callable[[int, str], torch.Tensor]:
        def get(rank: int, name: str) -> torch.Tensor:
            asked.add((time, rank, name))
            return data[rank, name]

        return get

    found = definition("x == (old(y) @ 2) - 10 or x @ 0 == x or z == z @ 1")
    check_definition(found, 3, rank=1, old=fetch("old"), final=fetch("final"))
    assert asked == {
        ("old", 2, "y"), ("final", 1, "x"), ("final", 0, "x"), ("final", 1, "z")
    }  # fmt: skip
    assert needs_final(found) == {"x", "z"}


def test_a_reduction_holds_few_tensors_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract_data, "CACHE_BYTES", 0)
    world, alive, most = 50, weakref.WeakSet[torch.Tensor](), [0]

    def old(rank: int, name: str) -> torch.Tensor:
        made = torch.full((6,), rank, dtype=torch.int32)
        alive.add(made)
        most[0] = max(most[0], len(alive))
        return made

    (result,) = check_definition(
        definition("x == sum(old(x) @ r for r in ranks)"),
        world,
        rank=0,
        old=old,
        final=lambda r, n: torch.full((6,), world * (world - 1) // 2, dtype=torch.int32),
    )
    assert result.ok
    assert most[0] <= 3


def test_entry_values_are_made_once_as_long_as_they_fit() -> None:
    made: list[tuple[int, str]] = []
    data = numbers(4)

    def old(rank: int, name: str) -> torch.Tensor:
        made.append((rank, name))
        return data[rank, name]

    found = definition("x[i] == max(old(x)[i] @ r for r in ranks) for i in range(6)")
    (result,) = check_definition(found, 4, rank=0, old=old, final=lambda r, n: data[3, n])
    assert result.ok
    assert sorted(made) == [(r, "x") for r in range(4)]


def test_a_plan_brings_all_that_is_needed() -> None:
    text = """
pattern p(x: float32[share(n, world, rank)], n = 10, op = sum, k: int[world] = [0 for r in ranks]):
    ensure x[0:2] == op((old(x) @ r)[0:2] for r in ranks) and k[rank] == 5 + rank
    all_reduce(x, op=op)
"""
    found = load_module(Source(text, "p.cl")).symbols["p"]
    plan = make_plan(found, 2, {"op": "max", "n": 8, "k": [5, 6]})
    filler = Filler(plan, seed=4)
    both = torch.maximum(filler.initial(0, "x"), filler.initial(1, "x"))
    (result,) = check_contracts(plan, 1, filler.initial, lambda r, n: both)
    assert result.ok, str(result.failure)
    (result,) = check_contracts(plan, 1, filler.initial, lambda r, n: both + 1)
    assert result.failure is not None
    assert result.failure.rank == 1


def test_a_pattern_without_contracts_has_no_results() -> None:
    found = load_module(Source("pattern p(x: float32[2]):\n    pass\n")).symbols["p"]
    nothing: Any = None
    assert check_definition(found, 2, rank=0, old=nothing, final=nothing) == []
    assert needs_final(found) == frozenset()
