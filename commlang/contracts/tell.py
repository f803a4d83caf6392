"""Terms in words: which contributions an element has, and which it should have."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from commlang.contracts.field import PRIME
from commlang.contracts.terms import SETS, rational
from commlang.operations import ReduceOp
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlang.contracts.addresses import Addresses, Place
    from commlang.contracts.regions import Cells
    from commlang.contracts.terms import Terms
    from commlang.expand.arrays import Int

SHOWN = 6
_TIMES = {Fraction(2): "twice"}

Counted: TypeAlias = "dict[int, int]"


@record
class Teller:
    """Names cells and terms; `cells` end at most where those of the buffers do."""

    addresses: Addresses
    cells: Cells
    terms: Terms

    def place(self, cell: int) -> tuple[Place, int] | None:
        """Where a cell starts and how many elements it has."""
        cuts = self.cells.cuts
        place = self.addresses.place(int(cuts[cell]))
        return None if place is None else (place, int(cuts[cell + 1] - cuts[cell]))

    def differences(self, got: int, expected: int) -> list[str]:
        """What `got` lacks, has too often or should not have; empty if no list says it."""
        found = self._contributions(got, expected)
        if found is None:
            return []
        have, want = found
        missing = [t for t in want if t not in have]
        surplus = [t for t in have if t not in want]
        both = [t for t in want if t in have and have[t] != want[t]]
        lines = [*self._list("missing", missing)]
        ratios: dict[Fraction, list[int]] = {}
        for term in both:
            inverse = pow(want[term], -1, PRIME)
            ratios.setdefault(rational(have[term] * inverse), []).append(term)
        for ratio, terms in ratios.items():
            if len(terms) == len(want):
                lines.append(f"everything counts {ratio} times what it should")
            else:
                lines += self._list(f"counted {_TIMES.get(ratio, f'{ratio} times')}", terms)
        alike = self._list("another result of", missing)
        if alike and alike == self._list("another result of", surplus):
            return alike
        unwritten = [t for t in surplus if self._is_temp(t)]
        lines += self._list("uninitialised", unwritten)
        lines += self._list("not expected", [t for t in surplus if t not in unwritten])
        return lines

    def _contributions(self, got: int, expected: int) -> tuple[Counted, Counted] | None:
        """Both terms as counts of the same kind of parts."""
        terms = self.terms
        ops = {terms.nodes[t][0] for t in (got, expected)} - {"entry", "unknown", "made"}
        for op in (*SETS, ReduceOp.BXOR):
            if ops == {op}:
                one, other = (dict.fromkeys(terms.members(op, t), 1) for t in (got, expected))
                return one, other
        if ops == {"product"}:
            return self._factors(got), self._factors(expected)
        (have, more), (want, less) = terms.linear(got), terms.linear(expected)
        plain = ("entry", "unknown", "made")
        named = all(terms.nodes[t][0] in plain for t in {**have, **want})
        return (have, want) if named and more == less else None

    def _factors(self, term: int) -> Counted:
        node = self.terms.nodes[term]
        parts: Sequence[int] = node[1] if node[0] == "product" else [term]
        return {part: parts.count(part) for part in parts}

    def _is_temp(self, term: int) -> bool:
        node = self.terms.nodes[term]
        place = self.place(node[1]) if node[0] == "entry" else None
        return place is not None and place[0].block.scope is not None

    def _list(self, head: str, parts: list[int]) -> list[str]:
        if not parts:
            return []
        regions, others = self._grouped(parts, 2)
        told = [f"{name} of {ranks(members)}" for name, members in regions.items()] + others
        more = len(told) - SHOWN
        listed = ", ".join(told[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        return [f"{head}: {listed}"]

    def describe(self, term: int, depth: int = 2) -> str:
        """A term in a few words."""
        node = self.terms.nodes[term]
        value = self.terms.constant(term)
        if value is not None:
            return str(rational(value))
        match node[0]:
            case "entry":
                place = self.place(node[1])
                if place is None:
                    return "something"
                what = "uninitialised " if place[0].block.scope is not None else ""
                return f"{what}{region(*place)} of rank {place[0].rank}"
            case "unknown":
                return "what a reduce leaves behind where it is not the root"
            case "made":
                return self.describe(node[1], depth)
            case "call":
                return self._call(node[1], node[3], depth)
            case "apply":
                return f"rounded {self.describe(node[2], depth)}"
            case "average":
                return f"1/{node[1]} of {self.describe(node[2], depth)}, rounded"
            case "sum":
                return self._sum(dict(node[1]), node[2], depth)
            case op:
                return f"{op}({self._named(node[1], depth)})"

    def _sum(self, parts: Counted, constant: int, depth: int) -> str:
        factors = set(parts.values())
        rest = f" + {rational(constant)}" if constant else ""
        if len(factors) > 1:
            return f"a sum of {len(parts)} terms{rest}"
        factor = rational(factors.pop())
        times = "" if factor == 1 else f"{factor} * "
        if len(parts) == 1:
            return f"{times}{self.describe(next(iter(parts)), depth)}{rest}"
        return f"{times}sum({self._named(list(parts), depth)}){rest}"

    def _named(self, parts: Sequence[int], depth: int) -> str:
        """Parts by name, those of one region with their ranks; of many only the first."""
        if not depth:
            return "…"
        regions, others = self._grouped(parts, depth - 1)
        told = [f"{name} of {ranks(members)}" for name, members in regions.items()] + others
        return ", ".join(told[:SHOWN]) + (", …" if len(told) > SHOWN else "")

    def _grouped(self, parts: Sequence[int], depth: int) -> tuple[dict[str, list[int]], list[str]]:
        """Regions with the ranks that they are of, and what is no region, described."""
        regions: dict[str, list[int]] = {}
        others: list[str] = []
        for part in parts:
            node = self.terms.nodes[part]
            place = self.place(node[1]) if node[0] == "entry" else None
            if place is None:
                others.append(self.describe(part, depth))
            else:
                regions.setdefault(region(*place), []).append(place[0].rank)
        return regions, list(dict.fromkeys(others))

    def _call(self, name: str, inputs: Sequence[tuple[int, int]], depth: int) -> str:
        if not depth:
            return f"{name}(…)"
        shown = [self.describe(part, depth - 1) for _, part in inputs]
        shown = list(dict.fromkeys(shown))
        more = ", …" if len(shown) > 3 else ""
        return f"{name}({', '.join(shown[:3])}{more})"


def region(place: Place, length: int) -> str:
    """`x[8:16]`, or for several dims the first and the last index."""
    shape = shape_on(place)
    name = place.block.name
    if not shape:
        return name
    if len(shape) == 1:
        if length == 1:
            return f"{name}[{place.index}]"
        return f"{name}[{place.index}:{place.index + length}]"
    first = _index(place.index, shape)
    if length == 1:
        return f"{name}[{first}]"
    return f"{name}[{first}] to {name}[{_index(place.index + length - 1, shape)}]"


def shape_on(place: Place) -> list[int]:
    """The shape of a buffer on the rank of a place; of a temp, as far as it is known, flat."""
    block = place.block
    numbers: tuple[Int, ...] = block.shape
    if any(isinstance(dim, np.ndarray) and len(dim) <= place.rank for dim in numbers):
        return [block.capacity]
    if block.scope is not None and any(isinstance(dim, np.ndarray) for dim in numbers):
        return [block.capacity]
    return [int(dim[place.rank]) if isinstance(dim, np.ndarray) else dim for dim in numbers]


def _index(element: int, shape: list[int]) -> str:
    index: list[str] = []
    for size in reversed(shape):
        element, within = divmod(element, max(1, size))
        index.append(str(within))
    return ", ".join(reversed(index))


def ranks(members: Iterable[int]) -> str:
    """`rank 3`, `ranks 1, 2 and 5`, `ranks 0 to 6`."""
    listed = sorted(set(members))
    if len(listed) == 1:
        return f"rank {listed[0]}"
    if len(listed) > 2 and listed[-1] - listed[0] == len(listed) - 1:
        return f"ranks {listed[0]} to {listed[-1]}"
    if len(listed) > 8:
        return f"{len(listed):,} ranks ({', '.join(map(str, listed[:5]))}, …)"
    return f"ranks {', '.join(map(str, listed[:-1]))} and {listed[-1]}"
