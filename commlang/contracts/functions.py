"""Calls of functions of which nothing is known, as numbers.

A call is a number for its function and its ints, plus the sum of what it reads, each element
weighted by its place; what it writes is a number for the call and the place. So calls of one
function on equal contents leave equal contents, whether the pattern makes them or a contract.
"""

from __future__ import annotations

import zlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.contracts import field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program.columns import Array
    from commlang.resolve.modules import Definition

LARGEST_TERM = 1 << 20
"""Numbers that are not whole are fractions of terms up to this."""
_PLACES = 7
"""Key of the weights of what is read; the next one is that of what is written."""


def number_of(definition: Definition) -> int:
    """A number for an extern, the same wherever it is called from."""
    place = f"{definition.module.source.path}\0{definition.node.span.start}"
    return number_of_name(f"extern\0{place}")


def number_of_name(name: str) -> int:
    """A number for a function of this name."""
    return zlib.crc32(name.encode())


def seeds(function: int, arguments: Sequence[Any], calls: int) -> Array:
    """By call, a number for the function and its arguments but for tensors.

    An argument is one value for all calls, an array with one for each, or a tuple of such.
    """
    seed = field.mix(np.full(calls, function, dtype=np.uint64))
    for value in arguments:
        seed = _entered(value, seed)
    return seed


def _entered(value: Any, seed: Array) -> Array:
    if isinstance(value, tuple):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            seed = _entered(part, seed)
        return seed
    entry: Any
    if isinstance(value, np.ndarray):
        entry = _by_call(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, Fraction):
        entry = field.number(value)
    elif isinstance(value, int):
        entry = value % field.WORD
    else:
        entry = zlib.crc32(str(value).encode())
    return field.mix(seed ^ field.mix(np.atleast_1d(np.asarray(entry, np.uint64))), 1)


def _by_call(values: Array) -> Array:
    """The entries of an argument that differs between calls, each as if it were the only one."""
    if values.dtype != np.float64:
        return values.astype(np.int64).view(np.uint64)
    found = [field.number(Fraction(v).limit_denominator(LARGEST_TERM)) for v in values.tolist()]
    return np.array(found, dtype=np.uint64)


def with_shape(seed: Array, shape: Sequence[Any]) -> Array:
    """Seeds of calls that read a tensor of this shape; its dims are ints or arrays by call."""
    for dim in shape:
        entry = np.asarray(dim, dtype=np.int64).view(np.uint64)
        seed = field.mix(seed ^ field.mix(np.atleast_1d(entry), 2), 2)
    return seed


def weights(place: Array, operand: Array | int, *, written: bool) -> Array:
    """Of elements at some places, in row-major order, of the tensors that a call is given.

    `operand` counts the function's tensors.
    """
    number = np.asarray(operand).astype(np.uint64)
    return field.mix(field.mix(place) ^ number, _PLACES + written)
