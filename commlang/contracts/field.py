"""Values of elements: numbers of the field of 2**61 - 1 elements, in uint64 arrays.

An element at entry is a pseudo-random number. What sums, scales and products do is done in the
field, so that two results agree only if they are the same polynomial of what went in, but for
unlucky numbers (see docs/contracts.md). Operations of another kind are made of fixed
pseudo-random permutations: `min`, `max`, `band` and `bor` add up the images of their arguments and
go back, which makes them associative and commutative and nothing else.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.operations import ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program.columns import Array

BITS = 61
PRIME = (1 << BITS) - 1
WORD = 1 << 64
_P = np.uint64(PRIME)
_32 = np.uint64(32)
_29 = np.uint64(29)
_LOW32 = np.uint64((1 << 32) - 1)
_LOW29 = np.uint64((1 << 29) - 1)
_8 = np.uint64(3)
_61 = np.uint64(BITS)


def number(value: int | Fraction) -> int:
    """A number of the language as an element of the field."""
    value = Fraction(value)
    return value.numerator * pow(value.denominator, -1, PRIME) % PRIME


def add(a: Array, b: Array) -> Array:
    """Sum; arguments and result are below the prime."""
    total = a + b
    return np.minimum(total, total - _P)  # the difference wraps round where the sum is in range


def subtract(a: Array, b: Array) -> Array:
    """Difference."""
    return add(a, _P - b)


def multiply(a: Array, b: Array | np.uint64) -> Array:
    """Product: schoolbook on halves of 32 bits, with 2**61 = 1."""
    low_a, high_a = a & _LOW32, a >> _32
    low_b, high_b = b & _LOW32, b >> _32
    middle = low_a * high_b + high_a * low_b  # below 2**62
    low = low_a * low_b
    high = high_a * high_b  # stands for high * 2**64 = high * 8
    total = (high << _8) + (middle >> _29) + ((middle & _LOW29) << _32)
    total += (low >> _61) + (low & _P)
    total = (total >> _61) + (total & _P)
    return np.minimum(total, total - _P)


def inverse(a: Array) -> Array:
    """1 / a (0 for 0): a to the power of the prime less two."""
    result, power, exponent = np.ones_like(a), a, PRIME - 2
    while exponent:
        if exponent & 1:
            result = multiply(result, power)
        power, exponent = multiply(power, power), exponent >> 1
    return result


_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)


def mix(x: Array, key: int = 0) -> Array:
    """A pseudo-random element for each 64-bit number (splitmix64), another one for another key."""
    x = x.astype(np.uint64) * _GOLDEN + np.uint64(key * 0xD1342543DE82EF95 + 1 & 0xFFFFFFFFFFFFFFFF)
    x ^= x >> _30
    x *= _M1
    x ^= x >> _27
    x *= _M2
    x ^= x >> _31
    x &= _P
    return np.minimum(x, x - _P)


def mix_one(*parts: int) -> int:
    """A pseudo-random element for a tuple of ints."""
    state = len(parts)
    for part in parts:
        state = int(mix(np.array([part & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64), state)[0])
    return state


class _Permutation:
    """A pseudo-random permutation of the numbers of 61 bits: multiply by odd numbers, shift."""

    def __init__(self, key: int) -> None:
        odd = [mix_one(key, i) | 1 for i in range(2)]
        self._forth = [np.uint64(m) for m in odd]
        self._back = [np.uint64(pow(m, -1, 1 << BITS)) for m in odd]
        self._key = np.uint64(mix_one(key, 2))

    def forth(self, x: Array) -> Array:
        x = x ^ self._key
        for factor in self._forth:
            x ^= x >> _32
            x = (x * factor) & _P
        return x ^ (x >> _32)

    def back(self, x: Array) -> Array:
        x = x ^ (x >> _32)  # a shift by more than half of the bits undoes itself
        for factor in reversed(self._back):
            x = (x * factor) & _P
            x ^= x >> _32
        return x ^ self._key


def _apart(key: int) -> Callable[[Array, Array], Array]:
    """An associative and commutative operation that obeys no other law."""
    permutation = _Permutation(key)

    def combine(a: Array, b: Array) -> Array:
        return permutation.back((permutation.forth(a) + permutation.forth(b)) & _P)

    return combine


SUM = ReduceOp.SUM

FOLDS: dict[ReduceOp, Callable[[Array, Array], Array]] = {
    ReduceOp.SUM: add,
    ReduceOp.AVG: add,
    ReduceOp.PREMUL_SUM: add,
    ReduceOp.PRODUCT: multiply,
    ReduceOp.BXOR: np.bitwise_xor,
    ReduceOp.MIN: _apart(11),
    ReduceOp.MAX: _apart(12),
    ReduceOp.BAND: _apart(13),
    ReduceOp.BOR: _apart(14),
}
"""What combines two values under a reduce op."""


def fold(op: ReduceOp, table: Array) -> Array:
    """Reduce the columns of a table (rows are results)."""
    function: Any = FOLDS[op]
    while table.shape[1] > 1:
        half = table.shape[1] // 2
        rest = table[:, 2 * half :]
        table = function(table[:, :half], table[:, half : 2 * half])
        if rest.shape[1]:
            table = np.concatenate([table, rest], axis=1)
    return table[:, 0]


def opaque(values: Array, key: int) -> Array:
    """Some function of the values, another one for another key."""
    return mix(values, key)
