"""Quantities as people write them: `450GB/s`, `400Gb/s`, `2us`, `989TFLOP/s`, or SI numbers."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

_PREFIXES = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "µ": 1e-6,
    "μ": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}
_TIMES = {"s": 1.0}
_RATES = {"B/s": 1.0, "b/s": 1 / 8, "bit/s": 1 / 8}
_SIZES = {"B": 1.0}
_WORK = {"flop/s": 1.0, "FLOP/s": 1.0, "FLOPS": 1.0, "op/s": 1.0}
_WRITTEN = re.compile(
    r"\s*(?P<number>[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[^\s\d].*?)?\s*"
)
_LONGEST = 40
_SMALLEST, _LARGEST = 1e-30, 1e30
"""Sums and quotients of what lies between are still numbers; no machine is anywhere near."""


def _reader(units: dict[str, float], example: str, *, positive: bool) -> BeforeValidator:
    """What turns a text or a number into a finite number of the unit that counts as 1."""

    def read(value: Any) -> float:
        number = _number(value, units, example)
        if not math.isfinite(number) or number < 0 or (positive and not number):
            least = "more than 0" if positive else "0 or more"
            raise ValueError(f"`{_short(value)}` must be finite and {least}, as `{example}` is")
        if number and not _SMALLEST <= number <= _LARGEST:
            raise ValueError(f"`{_short(value)}` is of no machine; write it as `{example}`")
        return number

    return BeforeValidator(read)


def _number(value: Any, units: dict[str, float], example: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    match = _WRITTEN.fullmatch(value) if isinstance(value, str) and len(value) < _LONGEST else None
    scale = None if match is None else _scale(match["unit"], units)
    if match is None or scale is None:
        raise ValueError(f"`{_short(value)}` is no such quantity; write `{example}` or a number")
    return float(match["number"].replace("_", "")) * scale


def _scale(unit: str | None, units: dict[str, float]) -> float | None:
    if unit is None:
        return 1.0
    for name, factor in units.items():
        prefix = unit.removesuffix(name)
        if unit.endswith(name) and prefix in _PREFIXES:
            return factor * _PREFIXES[prefix]
    return None


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, (str, int, float)) else type(value).__name__
    return text if len(text) < _LONGEST else text[: _LONGEST - 1] + "…"


Seconds = Annotated[float, _reader(_TIMES, "2us", positive=False)]
"""A time in seconds, 0 or more."""
BytesPerSecond = Annotated[float, _reader(_RATES, "450GB/s", positive=True)]
"""A rate in bytes per second, more than 0; `b/s` are bits."""
Bytes = Annotated[float, _reader(_SIZES, "80GB", positive=False)]
"""A size in bytes, 0 or more."""
FlopPerSecond = Annotated[float, _reader(_WORK, "989TFLOP/s", positive=True)]
"""A rate of arithmetic in operations per second, more than 0."""


def told(value: float, unit: str) -> str:
    """A number with at most four digits and the prefix that suits it: `450 GB/s`, `2 µs`."""
    if not value:
        return f"0 {unit}"
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)):
        if value >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    small = (("m", 1e-3), ("µ", 1e-6), ("n", 1e-9))
    prefix, factor = next((pair for pair in small if value >= pair[1]), small[-1])
    return f"{value / factor:.4g} {prefix}{unit}"
