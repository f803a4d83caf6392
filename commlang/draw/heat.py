"""A sequential scale: more of one colour for more of something, on light and on dark paper.

The paper shines through what is little, so that one colour serves both themes; numbers stand
beside it, since readers can compare few shades only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from commlang.draw.svg import element, text
from commlang.draw.words import bytes_text
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST = 0.2
"""How much of the colour the smallest value gets."""
DARK = 0.75
"""From here on, what stands on the colour is written in the paper's colour."""
WIDE = 32
"""Ratio of the largest to the smallest value from which on the scale is logarithmic."""
STYLE = ".heat{fill:var(--message)}.heat~.over{fill:var(--on)}\n"


@record
class Scale:
    """From `low` to `high`, both more than 0; by the logarithm if they lie far apart."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[int]) -> Scale:
        """The scale of some values, of which those of 0 get no colour."""
        some = [value for value in values if value > 0] or [1]
        return cls(float(min(some)), float(max(some)))

    @property
    def logarithmic(self) -> bool:
        """Whether equal steps of colour are equal ratios."""
        return self.high / self.low > WIDE

    def shade(self, value: float) -> float:
        """How much of the colour a value gets, 0 to 1."""
        if value <= 0:
            return 0.0
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
            return round(LEAST + (1 - LEAST) * part, 2)
        return round(max(value / self.high, LEAST), 2)

    def marks(self, count: int = 5) -> list[float]:
        """Values for a legend, from the least to the most."""
        if self.low == self.high:
            return [self.high]
        steps = [n / (count - 1) for n in range(count)]
        if self.logarithmic:
            return [self.low * (self.high / self.low) ** step for step in steps]
        return [self.low + (self.high - self.low) * step for step in steps]


def legend(scale: Scale, x: float, y: float) -> tuple[list[str], float]:
    """The scale as boxes with their values, in a line; and where the line ends."""
    parts: list[str] = []
    for value in scale.marks():
        words = bytes_text(round(value))
        shade = scale.shade(value)
        box = {"x": x, "y": y - 10, "width": 22, "height": 12, "rx": 2}
        parts.append(element("rect", class_="heat", **box, fill_opacity=f"{shade:g}"))
        parts.append(text(x + 28, y, words))
        x += 28 + len(words) * 6.1 + 14
    if scale.logarithmic:
        parts.append(text(x, y, "(a logarithmic scale)", class_="dim"))
        x += 128
    return parts, x
