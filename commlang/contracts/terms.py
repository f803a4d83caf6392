"""Values as terms: what exactly went into an element, and how.

Equal terms have one number. Sums are linear combinations, `min`, `max`, `band` and `bor` sets, so
that the order of operations, and for those also repetition, makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from commlang.contracts import field as numbers
from commlang.contracts.addresses import TooLarge
from commlang.operations import ReduceOp

Node: TypeAlias = tuple[Any, ...]
MAX_WORK = 4_000_000
"""Most parts of terms that are looked at for one contract: some seconds."""

SETS = (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.BAND, ReduceOp.BOR)


@dataclass(slots=True)
class Terms:
    """All terms by number.

    A node is one of `("entry", cell)`, `("unknown", event, cell)`, `("sum", ((term, factor), …),
    constant)`, `("product", (term, …))`, `(op, (term, …))` for an op of `SETS` or bxor,
    `("apply", key, term)`, `("average", count, term)` of integers, `("call", name, seed, ((weight,
    term), …))` and `("made", call, weight)`. Factors and constants are elements of the field.
    """

    nodes: list[Node] = field(default_factory=list[Node])
    work: int = 0
    _numbers: dict[Node, int] = field(default_factory=dict[Node, int])

    def make(self, *node: Any) -> int:
        """The number of a term."""
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return number

    def _charge(self, parts: int) -> None:
        self.work += parts
        if self.work > MAX_WORK:
            raise TooLarge("what went into its elements is too much to write down")

    # ---------------------------------------------------------------- arithmetic

    def linear(self, term: int) -> tuple[dict[int, int], int]:
        """A term as a linear combination of others and a constant."""
        node = self.nodes[term]
        if node[0] != "sum":
            return {term: 1}, 0
        parts: tuple[tuple[int, int], ...] = node[1]
        return dict(parts), node[2]

    def from_linear(self, parts: dict[int, int], constant: int) -> int:
        """The term for a linear combination."""
        kept = tuple(sorted((t, f) for t, f in parts.items() if f))
        if len(kept) == 1 and kept[0][1] == 1 and not constant:
            return kept[0][0]
        return self.make("sum", kept, constant)

    def number(self, value: int) -> int:
        """A constant of the field."""
        return self.make("sum", (), value)

    def constant(self, term: int) -> int | None:
        """The number that a term is, if it is one."""
        node = self.nodes[term]
        return node[2] if node[0] == "sum" and not node[1] else None

    def add(self, *terms: int) -> int:
        """A sum."""
        parts, constant = {}, 0
        for term in terms:
            more, number = self.linear(term)
            self._charge(len(more) + 1)
            if not parts:
                parts, constant = more, (constant + number) % numbers.PRIME
                continue
            constant = (constant + number) % numbers.PRIME
            for part, factor in more.items():
                parts[part] = (parts.get(part, 0) + factor) % numbers.PRIME
        self._charge(len(parts))
        return self.from_linear(parts, constant)

    def scale(self, term: int, factor: int) -> int:
        """A multiple."""
        parts, constant = self.linear(term)
        self._charge(len(parts) + 1)
        scaled = {part: f * factor % numbers.PRIME for part, f in parts.items()}
        return self.from_linear(scaled, constant * factor % numbers.PRIME)

    def multiply(self, *terms: int) -> int:
        """A product; sums in it are not multiplied out."""
        factor = 1
        parts: list[int] = []
        for term in terms:
            linear, constant = self.linear(term)
            if not linear:
                factor = factor * constant % numbers.PRIME
            elif len(linear) == 1 and not constant:
                ((part, more),) = linear.items()
                factor = factor * more % numbers.PRIME
                node = self.nodes[part]
                parts += node[1] if node[0] == "product" else (part,)
            else:
                parts.append(term)
        self._charge(len(parts) + 1)
        if not parts:
            return self.number(factor)
        base = parts[0] if len(parts) == 1 else self.make("product", tuple(sorted(parts)))
        return self.scale(base, factor)

    def combine(self, op: ReduceOp, terms: list[int]) -> int:
        """A reduction of at least one term."""
        match op:
            case ReduceOp.SUM | ReduceOp.AVG | ReduceOp.PREMUL_SUM:
                return self.add(*terms)
            case ReduceOp.PRODUCT:
                return self.multiply(*terms)
            case _:
                return self._bits(op, terms)

    def _bits(self, op: ReduceOp, terms: list[int]) -> int:
        found: dict[int, int] = {}
        for term in terms:
            for part in self.members(op, term):
                found[part] = found.get(part, 0) + 1
        self._charge(len(found) + len(terms))
        once = op is ReduceOp.BXOR
        kept = sorted(part for part, count in found.items() if not once or count % 2)
        if not kept:
            return self.number(0)
        return kept[0] if len(kept) == 1 else self.make(op, tuple(kept))

    def members(self, op: ReduceOp, term: int) -> tuple[int, ...]:
        """The arguments of a term under an op, itself if it is another one."""
        node = self.nodes[term]
        return node[1] if node[0] is op else (term,)

    # ------------------------------------------------------------------ questions

    def below(self, *wanted: int) -> list[int]:
        """All that terms are made of, and they: what is made of others comes after them."""
        found, stack = set(wanted), list(wanted)
        while stack:
            for part in self._parts(stack.pop()):
                if part not in found:
                    found.add(part)
                    stack.append(part)
        return sorted(found)

    def _parts(self, term: int) -> list[int]:
        node = self.nodes[term]
        match node[0]:
            case "sum":
                return [part for part, _ in node[1]]
            case "call":
                return [part for _, part in node[3]]
            case "made":
                return [node[1]]
            case "apply" | "average":
                return [node[2]]
            case "entry" | "unknown":
                return []
            case _:
                return list(node[1])

    def at_most(self, low: int, high: int) -> bool:
        """Whether `low <= high` follows from what minima and maxima are made of."""
        one, other = self.constant(low), self.constant(high)
        if one is not None and other is not None:
            return rational(one) <= rational(other)
        maxima = set(self.members(ReduceOp.MAX, high))
        minima = set(self.members(ReduceOp.MIN, low))
        return (
            low == high
            or maxima.issuperset(self.members(ReduceOp.MAX, low))
            or minima.issuperset(self.members(ReduceOp.MIN, high))
            or not maxima.isdisjoint(minima)
        )


def rational(value: int) -> Fraction:
    """The simplest number of the language that an element of the field stands for."""
    before, now, a, b = numbers.PRIME, value % numbers.PRIME, 0, 1
    while now > 1 << 30:
        quotient = before // now
        before, now, a, b = now, before - quotient * now, b, a - quotient * b
    return Fraction(now, b) if b else Fraction(value)
