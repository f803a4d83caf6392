"""Contracts that call externs, checked on data: called again on copies, where that can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from commlang.execute.contract import ContractResult, check_definition
from commlang.report.run import Contract
from commlang.report.text import _contract_lines  # pyright: ignore[reportPrivateUsage]
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = """\
extern twice(a: read float32[n], b: write float32[n], m: int)
extern add(a: read float32[n], acc: update float32[n])
extern both(a: read float32[n], acc: update float32[n], b: write float32[n])

pattern main(x: float32[n], y: float32[n], n = 4):
    let after(so_far, m) = add(twice(x, m), so_far)
"""

X = [torch.arange(4.0) + 10 * rank for rank in range(2)]


def twice(a: torch.Tensor, b: torch.Tensor, m: int) -> None:
    b.copy_(2 * a + m)
    a.zero_()  # an extern that breaks its word harms a copy


def add(a: torch.Tensor, acc: torch.Tensor) -> None:
    acc.add_(a)


def both(a: torch.Tensor, acc: torch.Tensor, b: torch.Tensor) -> None:
    b.copy_(acc - a)
    acc.add_(a)


CALLABLES: dict[str, Callable[..., Any]] = {"twice": twice, "add": add, "both": both}


def check(
    ensure: str, y: list[torch.Tensor], externs: dict[str, Callable[..., Any]] = CALLABLES
) -> list[ContractResult]:
    """What the two ranks say of a contract when x is `X` and y went from ones to something."""
    module = load_module(Source(f"{HEAD}    ensure {ensure}\n    fill(y, 1)\n"))
    assert [found.render() for found in check_all(module)] == []
    kept = [tensor.clone() for tensor in (*X, *y)]
    found = [
        check_definition(
            module.symbols["main"],
            2,
            rank=rank,
            old=lambda r, name: X[r] if name == "x" else torch.ones(4),
            final=lambda r, name: X[r] if name == "x" else y[r],
            externs=externs,
        )[0]
        for rank in range(2)
    ]
    assert all(torch.equal(a, b) for a, b in zip(kept, (*X, *y), strict=True))
    return found


def test_an_extern_is_called_again_with_its_ints() -> None:
    y = [2 * x + 3 for x in X]
    assert [r.ok and r.unchecked is None for r in check("y == twice(x, 3)", y)] == [True, True]
    y[1][2] = 0
    right, wrong = check("y == twice(x, 3)", y)
    assert right.ok
    assert str(wrong.failure) == "rank 1: y[2] is 0, expected 27; 1 of 4 elements are wrong"


def test_another_int_is_told() -> None:
    found = check("y == twice(x, 3)", [2 * x + 4 for x in X])
    assert [r.failure and (r.failure.expected, r.failure.got) for r in found] == [(3, 4), (23, 24)]


def test_several_results_are_a_list() -> None:
    ensure = "y == both(x, old(y))[0] + both(x, old(y))[1]"
    assert [r.ok for r in check(ensure, [torch.full((4,), 2.0)] * 2)] == [True, True]
    assert [r.ok for r in check("y == both(x, old(y))[1]", [x + 1 for x in X])] == [False, False]


def test_calls_may_stand_in_each_other_and_numbers_for_tensors() -> None:
    assert [r.ok for r in check("y == add(twice(x, 1), 5)", [2 * x + 6 for x in X])] == [True] * 2


def test_a_fold_goes_through_a_list() -> None:
    y = [6 * x + 0 + 1 + 2 + 7 for x in X]
    assert [r.ok for r in check("y == fold(after, 7, range(3))", y)] == [True, True]
    assert [r.ok for r in check("y == fold(after, 7, range(2))", y)] == [False, False]


def test_only_a_rank_itself_calls_its_callables() -> None:
    own, other = check("y == twice(x, 3) @ 0", [2 * X[0] + 3, X[1]])
    assert own.ok
    assert own.unchecked is None
    assert (other.ok, other.unchecked) == (True, "only rank 0 can call its `twice` again")


def test_without_a_callable_what_is_updated_stays_and_what_is_written_is_unknown() -> None:
    assert [r.ok for r in check("y == add(x, old(y))", [torch.ones(4)] * 2, {})] == [True, True]
    assert [r.ok for r in check("y == add(x, old(y))", X, {})] == [False, False]
    assert [r.ok for r in check("y == both(x, old(y))[0]", X, {})] == [False, False]
    reason = "extern `twice` has no Python callable, so that it wrote nothing"
    assert [r.unchecked for r in check("y == twice(x, 3)", X, {})] == [reason, reason]


def test_a_callable_that_fails_decides_nothing() -> None:
    def broken(*arguments: Any) -> None:
        raise ValueError("no state")

    found = check("y == twice(x, 3)", X, {"twice": broken})
    assert [r.unchecked for r in found] == ["`twice` failed: ValueError: no state"] * 2


def test_the_report_says_what_was_not_checked() -> None:
    contract = Contract(where="a.cl:1:1", text="ensure y == f(x)", ok=True, failures=[])
    assert _contract_lines([contract]) == ["  ensure y == f(x): holds on every rank"]
    contract.unchecked = "rank 1: only rank 0 can call its `f` again"
    assert _contract_lines([contract]) == [
        "  ensure y == f(x): not checked on these data",
        "    rank 1: only rank 0 can call its `f` again",
    ]
