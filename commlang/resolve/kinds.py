"""The types that can be told before any parameter is known."""

from __future__ import annotations

from enum import StrEnum

from commlang.records import record


class Kind(StrEnum):
    """What sort of value an expression has; the value is the words used in messages."""

    UNKNOWN = "an unknown value"
    INT = "an int"
    BOOL = "a bool"
    NUMBER = "a number"
    DURATION = "a duration"
    STRING = "a string"
    OP = "a reduce op"
    DTYPE = "a dtype"
    TENSOR = "a tensor"
    GROUP = "a group"
    SEQUENCE = "a list"
    TUPLE = "a tuple"
    TABLE = "a table"
    FUNCTION = "a function"


@record
class Type:
    """A kind with what is known of its parts.

    `items` holds the element type of a sequence, the member types of a tuple or the result type
    of a function; `names` the parameters of a function; `ndim` the number of dimensions of a
    tensor or table, None where it cannot be told. `contract` tells that only contracts can call
    a function.
    """

    kind: Kind
    items: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()
    ndim: int | None = None
    contract: bool = False

    def __str__(self) -> str:
        if self.kind is Kind.SEQUENCE and self.items[0].kind in _PLURALS:
            return f"a list of {_PLURALS[self.items[0].kind]}"
        return str(self.kind)


_PLURALS = {Kind.INT: "ints", Kind.TENSOR: "tensors", Kind.TUPLE: "tuples"}

UNKNOWN = Type(Kind.UNKNOWN)
INT = Type(Kind.INT)
BOOL = Type(Kind.BOOL)
NUMBER = Type(Kind.NUMBER)
DURATION = Type(Kind.DURATION)
STRING = Type(Kind.STRING)
OP = Type(Kind.OP)
DTYPE = Type(Kind.DTYPE)
TENSOR = Type(Kind.TENSOR)
GROUP = Type(Kind.GROUP)

NUMERIC = frozenset({Kind.INT, Kind.NUMBER})
ARITHMETIC = NUMERIC | {Kind.DURATION}

SCALARS: dict[str, Type] = {"int": INT, "bool": BOOL, "op": OP}
"""The types of parameters that are no tensors, by the name a pattern writes without a shape."""

CONSTANTS: dict[str, Type] = {
    "rank": INT,
    "world": INT,
    "ranks": GROUP,
    "true": BOOL,
    "false": BOOL,
}
"""The names that mean the same in every pattern and that nothing can shadow."""


def tensor(ndim: int | None) -> Type:
    """A tensor of so many dimensions."""
    return Type(Kind.TENSOR, ndim=ndim)


def sequence(element: Type) -> Type:
    """A list of values of one type."""
    return Type(Kind.SEQUENCE, (element,))


def element(type_: Type) -> Type:
    """The type of what iterating or indexing once gives."""
    if type_.kind is Kind.SEQUENCE:
        return type_.items[0]
    if type_.kind is Kind.GROUP:
        return INT
    if type_.kind is Kind.TABLE and type_.ndim is not None:
        return INT if type_.ndim == 1 else Type(Kind.TABLE, ndim=type_.ndim - 1)
    return UNKNOWN


def join(*types: Type) -> Type:
    """The one type of values that may be any of these; UNKNOWN where they differ."""
    first, *rest = types or (UNKNOWN,)
    for other in rest:
        first = _join(first, other)
    return first


def _join(a: Type, b: Type) -> Type:
    if a == b:
        return a
    if a.kind in NUMERIC and b.kind in NUMERIC:
        return NUMBER if Kind.NUMBER in (a.kind, b.kind) else INT
    if a.kind is b.kind is Kind.TENSOR:
        return TENSOR
    if a.kind is b.kind is Kind.SEQUENCE:
        return sequence(join(a.items[0], b.items[0]))
    return UNKNOWN
