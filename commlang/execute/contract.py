"""Every `ensure` of the pattern that ran, checked on the real data of one rank.

The values at entry are made again from the seed (see `fill`), the values at the end come from the
run. A reduction is computed exactly, one rank's tensor at a time, rounded to the dtype, and
compared bit by bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.execute.contract_calls import Externs, Unchecked
from commlang.execute.contract_data import Tensors
from commlang.execute.contract_evaluator import DataEvaluator
from commlang.execute.contract_names import needs_final
from commlang.expand.recursion import deep_recursion
from commlang.expand.run import expand
from commlang.records import record
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commlang.execute.contract_compare import Number
    from commlang.execute.contract_data import Fetch
    from commlang.execute.contract_evaluator import Found
    from commlang.expand.run import Shapes
    from commlang.expand.scope import Scope
    from commlang.plan import Plan
    from commlang.resolve.modules import Definition

__all__ = ["ContractResult", "Failure", "check_contracts", "check_definition", "needs_final"]


@record
class Failure:
    """Why an `ensure` does not hold.

    `rank` is the rank whose data are wrong: with `x @ r == …` rank r, else the one that checked.
    `tensor` and `index` say where the first wrong element is; without a tensor the index is one
    of the compared value, and without numbers the condition is simply false. `variables` are
    the loop variables of the contract there. `wrong` of `elements` compared elements differ,
    over all values of the loop variables.
    """

    rank: int
    variables: tuple[tuple[str, object], ...] = ()
    tensor: str | None = None
    index: tuple[int, ...] | None = None
    op: str = "=="
    expected: Number | None = None
    got: Number | None = None
    wrong: int = 0
    elements: int = 0

    def __str__(self) -> str:
        """`rank 2: x[3, 1] is 5, expected 7 (r = 3); 12 of 1,024 elements are wrong`."""
        variables = ", ".join(f"{name} = {value}" for name, value in self.variables)
        aside = f" ({variables})" if variables else ""
        if self.index is None:
            return f"rank {self.rank}: the condition is false{aside}"
        where = ", ".join(map(str, self.index))
        place = f"{self.tensor or 'the value at '}[{where}]" if self.index else self.tensor or "it"
        wanted = "" if self.op == "==" else f"{self.op} "
        return (
            f"rank {self.rank}: {place} is {_number(self.got)}, expected {wanted}"
            f"{_number(self.expected)}{aside}; "
            f"{self.wrong:,} of {self.elements:,} elements are wrong"
        )


@record
class ContractResult:
    """What checking one `ensure` on one rank gave; `where` is its `path:line:column`.

    `unchecked` says why data cannot tell whether it holds, as where it calls an extern that only
    took its time.
    """

    text: str
    where: str
    rank: int
    failure: Failure | None = None
    unchecked: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the data of this rank do not contradict the contract."""
        return self.failure is None


def check_contracts(
    plan: Plan,
    rank: int,
    old: Fetch,
    final: Fetch,
    externs: Mapping[str, Callable[..., Any]] | None = None,
) -> list[ContractResult]:
    """Check every `ensure` of a plan's pattern as one rank sees it; see `check_definition`."""
    program = plan.program(rank)
    return check_definition(
        program.definition,
        program.world,
        program.values,
        rank=rank,
        old=old,
        final=final,
        shapes=program.shapes,
        externs=externs,
    )


def check_definition(
    definition: Definition,
    world: int,
    values: Mapping[str, Any] | None = None,
    *,
    rank: int,
    old: Fetch,
    final: Fetch,
    shapes: Shapes | None = None,
    externs: Mapping[str, Callable[..., Any]] | None = None,
) -> list[ContractResult]:
    """Check every `ensure` of a pattern as one rank of the world sees it, in the order written.

    `values` and `shapes` are those that the pattern was expanded with. `old(rank, name)` gives a
    tensor parameter of any rank at entry, `final(rank, name)` at the end of the run: of this rank,
    and of others for the names in `needs_final(definition)`. Both have the declared shape and may
    be on any one device. `externs` are the Python callables that externs were bound to in the run:
    contracts that call them call these again, on copies. Raises PatternError, at its place, for a
    contract that has no meaning (shapes that differ, an index out of range).
    """
    node = definition.node
    contracts = [s for s in node.body if isinstance(s, ast.Ensure)]
    if not contracts:
        return []
    head = replace(definition, node=replace(node, body=()))
    recording = expand(head, world, values, shapes=shapes)
    recording.definition = definition
    tensors = Tensors(recording.tensors, world, old, final)
    evaluator = DataEvaluator(recording, tensors, Externs(rank, externs or {}))
    with deep_recursion():
        return [_check(evaluator, contract, rank) for contract in contracts]


def _check(evaluator: DataEvaluator, contract: ast.Ensure, rank: int) -> ContractResult:
    source = evaluator.recording.definition.module.source
    text, where = source.excerpt(contract.span), source.where(contract.span)
    own = evaluator.root(old=False).narrow(np.array([rank], dtype=np.int64))
    scope = evaluator.iterate(contract.clauses, own)
    if not scope.lanes:
        return ContractResult(text, where, rank)
    found = evaluator.differences = []
    try:
        holds = evaluator.boolean(contract.condition, scope, "an `ensure`")
    except Unchecked as reason:
        return ContractResult(text, where, rank, unchecked=str(reason))
    false = np.flatnonzero(~np.broadcast_to(holds, scope.lanes))
    if not len(false):
        return ContractResult(text, where, rank)
    return ContractResult(text, where, rank, _failure(rank, scope, false.tolist(), found))


def _failure(rank: int, scope: Scope, lanes: list[int], found: list[Found]) -> Failure:
    """The first difference found on a lane where the contract is false."""
    there = [f for f in found if f.lane_of(scope) in lanes]
    if not there:
        return Failure(rank, tuple(scope.context(lanes[0])))
    first = min(there, key=lambda f: f.lane_of(scope))
    at = first.difference
    return Failure(
        at.place.rank if at.place else rank,
        tuple(first.scope.context(first.lane)),
        at.place.name if at.place else None,
        at.index,
        at.op,
        at.expected,
        at.got,
        sum(f.difference.wrong for f in there),
        sum(f.difference.elements for f in there),
    )


def _number(value: Number | None) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
