"""What a pattern does with its numbers, as far as the choice of initial values asks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from commlang.expand.record import Column
from commlang.expand.values import Op
from commlang.operations import REDUCE_OPS, Kind, ReduceOp
from commlang.records import record
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.program import Program

_LARGEST_TERM = 1 << 20


@record
class Profile:
    """What decides which values are exact; the same on all ranks.

    `ops` are the reduce ops, by name and sorted. A result sums at most `contributions` initial
    values. It is divided by `divisor` in all and multiplied by at most `growth`.
    """

    ops: tuple[str, ...] = ()
    contributions: int = 1
    divisor: int = 1
    growth: int = 1


def profile_of(program: Program) -> Profile:
    """The profile of a pattern, from the program of all its ranks.

    A result is taken to sum one value of each rank: sums that are summed again (the activations
    of several layers, say) are exact only as far as the dtype has room for more.
    """
    ops = _site_ops(program)
    promised = _contract_ops(program)
    divisor, growth = math.prod(_averaged(program)), 1
    for numerator, denominator in _factors(program, ops | promised):
        divisor *= denominator
        growth *= max(1, numerator)
    if Op(ReduceOp.AVG) in promised:
        divisor = math.lcm(divisor, program.world)
    names = sorted({str(op.op) for op in ops | promised})
    return Profile(tuple(names), program.world, divisor, growth)


def _site_ops(program: Program) -> set[Op]:
    return {site.op for site in program.sites if site.op is not None}


def _averaged(program: Program) -> set[int]:
    """The sizes of the groups over which a collective takes the mean."""
    means = [s.op is not None and s.op.op is ReduceOp.AVG for s in program.sites]
    if not any(means):
        return set()
    found = np.unique(program.group[np.asarray(means, dtype=np.bool_)[program.site]])
    gids: list[int] = found.tolist()
    return {len(program.groups.entries[gid].members) for gid in gids}


def _contract_ops(program: Program) -> set[Op]:
    """The ops that `ensure` statements call: by name, by a parameter, or premul_sum(factor)."""
    found: set[Op] = set()
    for statement in program.definition.node.body:
        if not isinstance(statement, ast.Ensure):
            continue
        for node in walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                value = program.parameters.get(node.func.id)
                if isinstance(value, Op):
                    found.add(value)
                elif node.func.id in REDUCE_OPS:
                    found.add(Op(ReduceOp(node.func.id)))
    return found


def _factors(program: Program, ops: set[Op]) -> Iterator[tuple[int, int]]:
    """What results are multiplied and divided by: by `scale` statements and by premul_sum."""
    for op in ops:
        if op.factor is not None:
            yield _together([op.factor])
    for number, site in enumerate(program.sites):
        factor = dict(site.arguments).get("factor") if site.kind is Kind.SCALE else None
        if isinstance(factor, Column):
            rows = np.flatnonzero(program.site == number)
            numbers = program.numbers[program.numbers_at[rows] + factor.index]
            found = numbers.view(np.float64) if factor.real else numbers
            yield _together([_near(value) for value in np.unique(found).tolist()])
        elif factor is not None:
            yield _together([Fraction(factor)])


def _near(value: float) -> Fraction:
    """The fraction that was written, if the number is one of small terms."""
    return Fraction(value).limit_denominator(_LARGEST_TERM)


def _together(factors: list[Fraction]) -> tuple[int, int]:
    """The largest numerator, and a denominator that all factors have in common."""
    most = max(abs(factor.numerator) for factor in factors)
    return most, math.lcm(*(factor.denominator for factor in factors))
