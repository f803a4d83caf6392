"""Values as formulas of the rank and the world: what an expression is on every rank at once.

A value is *free* if it is the same on all ranks that come to a line together. Of free values it is
enough to know when two are equal, so they are compared by how they were made: `2 ** i` is an atom
of its own, and `i + 1 - i` is 1. What depends on the rank is known in a few forms only.
"""

from __future__ import annotations

from typing import TypeAlias

from commlang.records import record

Key: TypeAlias = tuple[object, ...]
"""Names a free value by how it was made; equal keys are equal values."""

WORLD: Key = ("world",)


@record
class Linear:
    """`slope * rank + (a sum of whole multiples of free atoms) + constant`, exactly."""

    slope: int
    terms: tuple[tuple[Key, int], ...]
    constant: int

    @property
    def free(self) -> bool:
        """Whether it does not depend on the rank."""
        return self.slope == 0

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """`self + times * other`."""
        terms = dict(self.terms)
        for key, count in other.terms:
            terms[key] = terms.get(key, 0) + times * count
        kept = sorted((item for item in terms.items() if item[1]), key=repr)
        slope = self.slope + times * other.slope
        return Linear(slope, tuple(kept), self.constant + times * other.constant)

    def minus(self, other: Linear) -> Linear:
        """`self - other`."""
        return self.plus(other, -1)

    def offset(self) -> Linear:
        """What is added to the multiple of the rank."""
        return Linear(0, self.terms, self.constant)

    def residue(self) -> Linear:
        """Another formula of the same remainder when divided by the world."""
        kept = tuple(item for item in self.terms if item[0] != WORLD)
        return Linear(self.slope, kept, self.constant)

    def at_least_zero(self) -> bool:
        """Whether it surely is, in every world of one rank or more."""
        count = sum(count for _, count in self.terms)
        plain = self.slope == 0 and all(key == WORLD for key, _ in self.terms)
        return plain and count >= 0 and count + self.constant >= 0

    @property
    def key(self) -> Key:
        """Names a free value."""
        return ("linear", self.terms, self.constant)


def whole(value: int) -> Linear:
    """A constant."""
    return Linear(0, (), value)


def atom(key: Key) -> Linear:
    """A free value of which only the origin is known."""
    return Linear(0, ((key, 1),), 0)


RANK = Linear(1, (), 0)
SIZE = atom(WORLD)
ZERO, ONE = whole(0), whole(1)


@record
class Wrapped:
    """`inner % world`, or with `exact` false something of that remainder."""

    inner: Linear
    exact: bool = True


@record
class Flipped:
    """`rank ^ mask`, of a free mask."""

    mask: Key


@record
class Remainder:
    """`rank % modulus`, of a constant modulus from 2 up."""

    modulus: int


@record
class Interval:
    """The ranks for which `low <= (rank - shift) % world < high`; all three are free."""

    shift: Linear = ZERO
    low: Linear = ZERO
    high: Linear = SIZE


@record
class Residue:
    """The ranks of one remainder, from 0 to below the modulus."""

    modulus: int
    value: int


Guard: TypeAlias = Interval | Residue
"""Some ranks, by a condition that a line stands under."""

ALL = Interval()


def both(a: Guard, b: Guard) -> Guard | None:
    """The ranks that are in both, if there is a form for them."""
    if ALL in (a, b) or a == b:
        return b if a == ALL else a
    if not isinstance(a, Interval) or not isinstance(b, Interval) or a.shift != b.shift:
        return None
    low = _one(a.low, b.low, ZERO)
    high = _one(a.high, b.high, SIZE)
    return None if low is None or high is None else Interval(a.shift, low, high)


def _one(a: Linear, b: Linear, default: Linear) -> Linear | None:
    """The bound that decides, where one of the two excludes no rank."""
    if a in (b, default):
        return b
    return a if b == default else None


def others(guard: Guard) -> Guard | None:
    """The ranks that are not in it, if there is a form for them."""
    match guard:
        case Residue(2, value):
            return Residue(2, 1 - value)
        case Interval(shift, low, high) if low == ZERO and high != SIZE:
            return Interval(shift, high, SIZE)
        case Interval(shift, low, high) if high == SIZE and low != ZERO:
            return Interval(shift, ZERO, low)
        case _:
            return None


def compared(op: str, left: object, right: Linear) -> Guard | None:
    """The ranks for which `left op right` holds, of a free right side."""
    match left:
        case Remainder(modulus):
            inside = not right.terms and 0 <= right.constant < modulus
            guard = Residue(modulus, right.constant)
            return (
                (guard if op == "==" else others(guard) if op == "!=" else None) if inside else None
            )
        case Wrapped(inner, exact=True) if inner.slope == 1:
            shift, bound = whole(0).minus(inner.offset()).residue(), right
        case Linear(1):
            shift, bound = ZERO, right.minus(left.offset())
        case _:
            return None
    after = bound.plus(ONE)
    match op:
        case "<":
            return Interval(shift, ZERO, bound)
        case "<=":
            return Interval(shift, ZERO, after)
        case ">":
            return Interval(shift, after, SIZE)
        case ">=":
            return Interval(shift, bound, SIZE)
        case "==":
            return Interval(shift, bound, after)
        case "!=":
            return others(Interval(shift, bound, after))
        case _:
            return None
