"""Number literals with size and duration suffixes."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

SIZES: dict[str, int] = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{prefix}i": 1 << (10 * power) for power, prefix in enumerate("KMGT", start=1)
}
"""Size suffixes: decimal ones as in SI, `Ki` and so on as in IEC 80000-13."""

DURATIONS: dict[str, Fraction] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
}

_PARTS = re.compile(r"([0-9_]+(?:\.[0-9_]+)?)(?:[eE]([+-]?[0-9]+))?([A-Za-z]*)")
MAX_DIGITS = 40
MAX_EXPONENT = 40


def number(text: str) -> tuple[int | Fraction, Literal["", "s"]]:
    """The exact value of a literal and its unit; raises ValueError with the reason."""
    match = _PARTS.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a number")
    digits, exponent, suffix = match.groups()
    power = int(exponent or 0) if len(exponent or "") <= MAX_DIGITS else MAX_EXPONENT + 1
    if len(digits) > MAX_DIGITS or abs(power) > MAX_EXPONENT:
        raise ValueError("the number has too many digits")
    value = Fraction(digits.replace("_", "")) * Fraction(10) ** power
    if suffix in DURATIONS:
        return value * DURATIONS[suffix], "s"
    if suffix and suffix not in SIZES:
        known = ", ".join([*SIZES, *DURATIONS])
        raise ValueError(f"unknown suffix `{suffix}`; the suffixes are {known}")
    value *= SIZES.get(suffix, 1)
    return (value.numerator if value.denominator == 1 else value), ""
