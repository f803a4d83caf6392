"""Two terms that are not the same: do they differ for some data, and can that be told?"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING

from commlang.contracts.terms import rational
from commlang.operations import ReduceOp
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.contracts.terms import Terms

_TRIALS = 24
_SPIKES = 64
_HUGE = 1 << 20


@record
class Side:
    """Two terms that should compare as `got op expected`."""

    op: str
    got: int
    expected: int


def violated(terms: Terms, groups: list[list[Side]]) -> int | None:
    """The place in the first group of a pair that fails for data for which every group has one.

    None if no such data were found, which proves nothing.
    """
    sides = [side for group in groups for side in group]
    if all(side.op in ("==", "!=") and side.got == side.expected for side in sides):
        wrong = [i for i, side in enumerate(groups[0]) if side.op == "!="]
        return wrong[0] if wrong and len(groups) == 1 else None
    below = sorted({t for side in sides for t in terms.below(side.got, side.expected)})
    for values in _trials(terms, below, sides):
        known = _evaluate(terms, below, values)
        wrong = [
            [i for i, s in enumerate(group) if not _COMPARE[s.op](known[s.got], known[s.expected])]
            for group in groups
        ]
        if all(wrong):
            return wrong[0][0]
    return None


_COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: True,  # numbers that happen to be equal would say nothing of others
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def follows(terms: Terms, side: Side) -> bool:
    """Whether a comparison holds for all data, as the terms show."""
    op, got, expected = side.op, side.got, side.expected
    parts, constant = terms.linear(terms.add(got, terms.scale(expected, -1)))
    apart = rational(constant) if not parts else None
    match op:
        case "==":
            return got == expected
        case "!=":
            return bool(apart)
        case "<":
            return apart is not None and apart < 0
        case ">":
            return apart is not None and apart > 0
        case "<=":
            return terms.at_most(got, expected) or (apart is not None and apart <= 0)
        case _:
            return terms.at_most(expected, got) or (apart is not None and apart >= 0)


def _trials(terms: Terms, below: list[int], sides: list[Side]) -> list[dict[int, Fraction]]:
    """Numbers for what went in: small ones, and such that one is larger or smaller than all."""
    chance = random.Random(0)
    free = [t for t in below if terms.nodes[t][0] in ("entry", "unknown")]
    only = set(terms.below(sides[0].got)) ^ set(terms.below(sides[0].expected))
    first = sorted(free, key=lambda t: t not in only)[:_SPIKES]
    found = [{t: Fraction(chance.randrange(1, 1 << 16)) for t in free} for _ in range(_TRIALS)]
    spikes = [(spike, Fraction(value)) for spike in first for value in (_HUGE, 0)]
    return found + [{**found[0], spike: value} for spike, value in spikes]


def _evaluate(terms: Terms, below: list[int], given: dict[int, Fraction]) -> dict[int, Fraction]:
    """The value of every term; functions of which nothing is known get numbers by their inputs."""
    known = dict(given)
    for term in below:
        node = terms.nodes[term]
        match node[0]:
            case "entry" | "unknown":
                pass
            case "sum":
                total = rational(node[2])
                for part, factor in node[1]:
                    total += known[part] * rational(factor)
                known[term] = total
            case "product":
                total = Fraction(1)
                for part in node[1]:
                    total *= known[part]
                known[term] = total
            case "apply":
                known[term] = _some("apply", node[1], known[node[2]])
            case "average":
                known[term] = Fraction(int(known[node[2]] / node[1]))
            case "call":
                inputs = tuple((w, known[part]) for w, part in node[3])
                known[term] = _some("call", node[2], inputs)
            case "made":
                known[term] = _some("made", node[2], known[node[1]])
            case ReduceOp.MIN:
                known[term] = min(known[part] for part in node[1])
            case ReduceOp.MAX:
                known[term] = max(known[part] for part in node[1])
            case op:
                known[term] = _bits(op, [known[part] for part in node[1]])
    return known


def _some(*inputs: object) -> Fraction:
    return Fraction(random.Random(repr(inputs)).randrange(1, 1 << 16))


def _bits(op: object, values: list[Fraction]) -> Fraction:
    """Bit operations on integers; of anything else, some number."""
    if any(value.denominator > 1 for value in values):
        return _some(op, sorted(values))
    result = values[0].numerator
    for value in values[1:]:
        bits = value.numerator
        if op is ReduceOp.BAND:
            result &= bits
        elif op is ReduceOp.BOR:
            result |= bits
        else:
            result ^= bits
    return Fraction(result)
