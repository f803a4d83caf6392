"""Integer arithmetic over lanes: a value is one Python int, or an int64 array with one per lane.

Results are kept below 2**62 in magnitude, so that no array operation can wrap round silently.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Int: TypeAlias = int | Array
Bool: TypeAlias = bool | BoolArray

LIMIT = 1 << 62
_SAFE = 1 << 31


class ArithmeticFault(Exception):
    """An operation without a result; `lanes` marks where, None if everywhere."""

    def __init__(self, message: str, lanes: Bool = True, hint: str | None = None) -> None:
        super().__init__(message)
        self.lanes = lanes
        self.hint = hint


def is_array(value: object) -> TypeGuard[NDArray[Any]]:
    """Whether a value is given per lane (plain `isinstance` leaves the dtype unknown)."""
    return isinstance(value, np.ndarray)


def is_int(value: object) -> TypeGuard[Int]:
    """Whether a value is an integer, uniform or per lane (bools are not)."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return is_array(value) and value.dtype == np.int64


def is_bool(value: object) -> TypeGuard[Bool]:
    """Whether a value is a truth value, uniform or per lane."""
    return isinstance(value, bool) or (is_array(value) and value.dtype == np.bool_)


def is_real(value: object) -> TypeGuard[NDArray[np.float64]]:
    """Whether a value is a number that differs between lanes and is no int."""
    return is_array(value) and value.dtype == np.float64


def is_number(value: object) -> bool:
    """Whether a value is an int, a Fraction, or a number that differs between lanes (float64)."""
    return is_int(value) or isinstance(value, Fraction) or is_real(value)


def real(value: Any) -> Any:
    """A number as float64: exact fractions are kept only while they are uniform."""
    return value.astype(np.float64) if is_array(value) else float(value)


def lane(value: Any, index: int) -> Any:
    """The value of one lane."""
    return value[index].item() if isinstance(value, np.ndarray) else value


def first_lane(condition: Bool) -> int:
    """The first lane on which a condition holds, for a message."""
    return int(np.argmax(condition)) if isinstance(condition, np.ndarray) else 0


def top(value: Int) -> int:
    """The largest of all lanes (0 for none)."""
    if isinstance(value, np.ndarray):
        return int(value.max()) if value.size else 0
    return value


def magnitude(value: Int) -> int:
    """The largest absolute value of all lanes (0 for none)."""
    if isinstance(value, np.ndarray):
        return max(int(value.max()), -int(value.min())) if value.size else 0
    return abs(value)


def total(value: Int, lanes: int) -> int:
    """The sum over all lanes; the sum of an array is cut at LIMIT, where it might wrap round."""
    if not isinstance(value, np.ndarray):
        return value * lanes
    return int(value.sum()) if magnitude(value) * lanes < LIMIT else LIMIT


def anywhere(condition: Bool) -> bool:
    """Whether a condition holds on at least one lane."""
    return bool(condition.any()) if isinstance(condition, np.ndarray) else condition


def everywhere(condition: Bool) -> bool:
    """Whether a condition holds on all lanes."""
    return bool(condition.all()) if isinstance(condition, np.ndarray) else condition


def broadcast(value: Int, lanes: int) -> Array:
    """The value as an array with one entry per lane."""
    if isinstance(value, np.ndarray):
        return value
    return np.full(lanes, value, dtype=np.int64)


def squeeze(value: Any) -> Int:
    """An array as a plain int where all lanes agree."""
    if value.ndim == 0:
        return int(value)
    if value.size and int(value[0]) == int(value[-1]) and bool((value == value[0]).all()):
        return int(value[0])
    return value


def _bounded(value: Int) -> Int:
    if isinstance(value, int) and abs(value) >= LIMIT:
        raise ArithmeticFault("the result is too large for a 64-bit integer")
    return value


def add(a: Int, b: Int) -> Int:
    """Sum, with overflow refused."""
    _check_sum(a, b)
    return _bounded(a + b)


def subtract(a: Int, b: Int) -> Int:
    """Difference, with overflow refused."""
    _check_sum(a, b)
    return _bounded(a - b)


def _check_sum(a: Int, b: Int) -> None:
    for scalar, other in ((a, b), (b, a)):
        if isinstance(scalar, int) and abs(scalar) < _SAFE:
            continue
        if isinstance(other, np.ndarray) and magnitude(scalar) + magnitude(other) >= LIMIT:
            raise ArithmeticFault("the result is too large for a 64-bit integer")


def multiply(a: Int, b: Int) -> Int:
    """Product, with overflow refused."""
    if (isinstance(a, np.ndarray) or isinstance(b, np.ndarray)) and magnitude(a) * magnitude(
        b
    ) >= LIMIT:
        raise ArithmeticFault("the result is too large for a 64-bit integer")
    return _bounded(a * b)


def floor_divide(a: Int, b: Int) -> Int:
    """Python's `//`; a zero divisor is refused."""
    _no_zero(b)
    return a // b


def modulo(a: Int, b: Int) -> Int:
    """Python's `%`; a zero divisor is refused."""
    _no_zero(b)
    if isinstance(a, np.ndarray) and isinstance(b, int):
        return a - (a // b) * b  # numpy vectorises // by a scalar, but not %
    return a % b


def _no_zero(b: Int) -> None:
    zero = b == 0
    if anywhere(zero):
        raise ArithmeticFault("division by zero", zero)


def exact_divide(a: Any, b: Any) -> Any:
    """`/`: exact, an int where it comes out even, else a Fraction.

    Ints that differ between lanes must come out even on all of them; other numbers that differ are
    divided as float64.
    """
    zero = b == 0
    if anywhere(zero):
        raise ArithmeticFault("division by zero", zero)
    a, b = (squeeze(v) if is_array(v) and is_int(v) else v for v in (a, b))
    if not is_array(a) and not is_array(b):
        result = Fraction(a) / Fraction(b)
        whole = result.denominator == 1 and isinstance(a, int) and isinstance(b, int)
        return result.numerator if whole else result
    if not (is_int(a) and is_int(b)):
        return real(a) / real(b)
    quotient, rest = floor_divide(a, b), modulo(a, b)
    if anywhere(rest != 0):
        hint = "write `//` to round down; a fraction has to be the same one on every rank"
        raise ArithmeticFault("`/` does not come out even on every rank", rest != 0, hint)
    return quotient


def power(a: Int, b: Int) -> Int:
    """`**` with an exponent of 0 or more."""
    negative = b < 0
    if anywhere(negative):
        raise ArithmeticFault("a negative exponent", negative)
    base, exponent = magnitude(a), top(b)
    if base > 1 and (exponent * (base.bit_length() - 1) >= 62 or base**exponent >= LIMIT):
        raise ArithmeticFault("the result is too large for a 64-bit integer")
    return a**b


def shift_left(a: Int, b: Int) -> Int:
    """`<<` with a shift of 0 or more."""
    _shift_in_range(b)
    if magnitude(a).bit_length() + top(b) > 62:
        raise ArithmeticFault("the result is too large for a 64-bit integer")
    return a << b


def shift_right(a: Int, b: Int) -> Int:
    """`>>` with a shift of 0 or more."""
    _shift_in_range(b)
    if isinstance(b, np.ndarray):
        return a >> np.minimum(b, 63)
    return a >> min(b, 63)


def _shift_in_range(b: Int) -> None:
    negative = b < 0
    if anywhere(negative):
        raise ArithmeticFault("a negative shift", negative)


def floor_log2(a: Int) -> Int:
    """The largest k with 2**k <= a."""
    bad = a < 1
    if anywhere(bad):
        raise ArithmeticFault("log2 of a number below 1", bad)
    if isinstance(a, int):
        return a.bit_length() - 1
    result = np.zeros_like(a)
    rest = a.copy()
    for shift in (32, 16, 8, 4, 2, 1):
        high = rest >= (1 << shift)
        result[high] += shift
        rest[high] >>= shift
    return result


def ceil_log2(a: Int) -> Int:
    """The smallest k with 2**k >= a."""
    bad = a < 1
    if anywhere(bad):
        raise ArithmeticFault("log2ceil of a number below 1", bad)
    if isinstance(a, int):
        return (a - 1).bit_length()
    below = floor_log2(a)
    return below + ((1 << below) < a)


def share(n: Int, k: Int, i: Int) -> Int:
    """The length of chunk i of k chunks of n elements: the first n % k are longer by one."""
    return floor_divide(n, k) + (i < modulo(n, k))


def minimum(a: Int, b: Int) -> Int:
    """The smaller of two, lane by lane."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return np.minimum(a, b)


def maximum(a: Int, b: Int) -> Int:
    """The larger of two, lane by lane."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return np.maximum(a, b)


def logical_and(a: Bool, b: Bool) -> Bool:
    """`a and b`, lane by lane."""
    if isinstance(a, bool):
        return b if a else False
    return a & b


def logical_not(a: Bool) -> Bool:
    """`not a`, lane by lane."""
    return not a if isinstance(a, bool) else ~a
