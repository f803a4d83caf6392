"""A number that the dtype cannot hold (CL264).

`fill` and `scale` take a number. An integer dtype holds whole numbers in a range: torch refuses
most of what is outside when the pattern runs, wraps some of it round (`-1` in a `uint8` is 255) and
drops fractions silently, so that `fill(x, 0.5)` leaves zeros. A fraction times an integer has no
exact result, and in a short float a large number is infinite.

Take a dtype that holds the number, or cast into a `temp` of a float dtype, compute there, and cast
back by an arrow.

- [torch.Tensor.fill_](https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.fill_.html)
- [torch.finfo and torch.iinfo](https://docs.pytorch.org/docs/2.13/type_info.html)
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.expand.record import Column
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.dtypes import DType
    from commlang.expand.record import Site

RULE = Rule(
    "CL264",
    "value-out-of-range",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: int8[n], y: int32[n], n = 8):
    fill(x, 300)  # CL264
    scale(y, 1 / 2)  # CL264
""",
        """\
pattern main(x: float16[n], n = 8):
    fill(x, 1M)  # CL264
""",
    ),
    valid=(
        """\
pattern main(x: int8[n], y: int32[n], n = 8):
    fill(x, 100)
    temp half: float64[n]
    y -> half
    scale(half, 1 / 2)
    half -> y
""",
    ),
)

_LARGEST = {
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 2.0**127,
    "float16": 65504.0,
    "complex32": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "complex64": 3.4028234663852886e38,
}
"""The largest finite number of the float dtypes that are short of a double's."""


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement, for the first of its events that is wrong."""
    for number, site in enumerate(facts.program.sites):
        flags = site.dtype is not None and site.dtype.family == "bool"
        asked = site.kind is Kind.FILL or (site.kind is Kind.SCALE and not flags)
        if asked and site.dtype is not None:
            found = _wrong(facts, number, site, site.dtype)
            if found is not None:
                yield _report(facts, site, site.dtype, *found)


def _wrong(facts: Facts, number: int, site: Site, dtype: DType) -> tuple[int, Any] | None:
    """The first event whose number does not fit, and the number."""
    program = facts.program
    ((_, value),) = site.arguments
    rows = np.flatnonzero(program.site == number)
    if not isinstance(value, Column):
        return (int(rows[0]), value) if len(rows) and not _fits(value, dtype) else None
    numbers = program.numbers[program.numbers_at[rows] + value.index]
    numbers = numbers.view(np.float64) if value.real else numbers
    low, high = _range(dtype)
    bad = (numbers < low) | (numbers > high)
    if value.real and dtype.family in ("int", "uint", "bool"):
        bad |= numbers != np.floor(numbers)
    at = np.flatnonzero(bad)
    return (int(rows[at[0]]), numbers[at[0]].item()) if len(at) else None


def _fits(value: int | Fraction | float, dtype: DType) -> bool:
    low, high = _range(dtype)
    whole = dtype.family not in ("int", "uint", "bool") or value == int(value)
    return whole and low <= value <= high


def _range(dtype: DType) -> tuple[float, float]:
    """The least and the largest number, which for complex dtypes are those of a part."""
    bits = 8 * dtype.itemsize
    match dtype.family:
        case "int":
            return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        case "uint":
            return 0, (1 << bits) - 1
        case "bool":
            return 0, 1
        case _:
            largest = _LARGEST.get(dtype.name, float("inf"))
            return -largest, largest


def _report(facts: Facts, site: Site, dtype: DType, row: int, value: Any) -> Diagnostic:
    low, high = _range(dtype)
    message = f"{dtype} cannot hold {_said(value)}"
    why = f"it holds {_said(low)} to {_said(high)}"
    if dtype.family in ("int", "uint", "bool"):
        why = f"it holds whole numbers from {_said(low)} to {_said(high)}"
        if site.kind is Kind.SCALE and value != int(value):
            message = f"{dtype} times {_said(value)} has no exact result"
    hint = "cast into a `temp` of a dtype that holds it"
    return Diagnostic(RULE.code, message, (facts.label(row),), (why,), hint)


def _said(value: int | Fraction | float) -> str:
    if isinstance(value, Fraction):
        text = str(float(value))
        return text if Fraction(text) == value else f"{value.numerator}/{value.denominator}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
