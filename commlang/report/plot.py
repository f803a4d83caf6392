"""Lines over logarithmic axes as a small SVG, readable in light and dark."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from commlang.records import record
from commlang.report.text import seconds_text
from commlang.verify.values import format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Told apart by colour-blind readers: Okabe and Ito, https://jfly.uni-koeln.de/color/."""
DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""With colours, twenty-four lines look different; more repeat."""
WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 24, 44, 56
_STYLE = (
    "svg{background:#fff;color:#222;font:13px sans-serif}"
    "text{fill:currentColor}.grid{stroke:#8886;stroke-width:1}"
    ".line{fill:none;stroke-width:2}"
    "@media(prefers-color-scheme:dark){svg{background:#161616;color:#ddd}}"
)


@record
class Line:
    """A label and points (x, seconds), sorted by x."""

    label: str
    points: list[tuple[float, float]]


@record
class _Scale:
    """From values to a stretch of the picture, by logarithms; what is 0 lies at the low end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = math.log(self.high / self.low)
        part = math.log(max(value, self.low) / self.low) / span
        return self.start + part * (self.end - self.start)


def line_plot(lines: Sequence[Line], *, title: str, across: str) -> str:
    """The picture; `across` names what x is. The y axis shows times."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    x_scale = _scale(xs, _LEFT, WIDTH - _RIGHT)
    legend = 18 * math.ceil(len(lines) / 3) if any(line.label for line in lines) else 0
    y_scale = _scale(ys, HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<text x="{_LEFT}" y="24" font-size="16">{escape(title)}</text>',
        *_x_axis(x_scale, xs, across),
        *_y_axis(y_scale),
        *(_line(number, line, x_scale, y_scale) for number, line in enumerate(lines)),
        *(_label(number, line) for number, line in enumerate(lines) if line.label),
    ]
    height = HEIGHT + legend
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _scale(values: Sequence[float], start: float, end: float) -> _Scale:
    positive = [v for v in values if v > 0] or [1.0]
    low, high = min(positive), max(positive)
    if high < low * 1.01:
        low, high = low / 2, high * 2
    return _Scale(low, high, start, end)


def _x_axis(scale: _Scale, values: Sequence[float], name: str) -> list[str]:
    ticks = sorted(set(values))
    ticks = ticks[:: max(1, math.ceil(len(ticks) / 9))]
    found = [
        f'<line class="grid" x1="{scale(v):.1f}" x2="{scale(v):.1f}" y1="{_TOP}" '
        f'y2="{HEIGHT - _BOTTOM}"/><text x="{scale(v):.1f}" y="{HEIGHT - _BOTTOM + 18}" '
        f'text-anchor="middle">{escape(_number(v))}</text>'
        for v in ticks
    ]
    middle = (scale.start + scale.end) / 2
    label = f'<text x="{middle:.0f}" y="{HEIGHT - 16}" text-anchor="middle">{escape(name)}</text>'
    return [*found, label]


def _y_axis(scale: _Scale) -> list[str]:
    first, last = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [s * 10.0**e for e in range(first, last + 1) for s in steps]
    return [
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{scale(v):.1f}" '
        f'y2="{scale(v):.1f}"/><text x="{_LEFT - 8}" y="{scale(v) + 4:.1f}" '
        f'text-anchor="end">{seconds_text(v)}</text>'
        for v in ticks
        if scale.low <= v <= scale.high
    ]


def _number(value: float) -> str:
    return format_value(int(value)) if value == int(value) else f"{value:.3g}"


def _strokes(number: int) -> str:
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{dash}"'


def _line(number: int, line: Line, x_scale: _Scale, y_scale: _Scale) -> str:
    places = [(x_scale(x), y_scale(y)) for x, y in line.points]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{COLOURS[number % len(COLOURS)]}">'
        f"<title>{escape(f'{line.label} {_number(x)}'.strip())}: {seconds_text(y)}</title></circle>"
        for (px, py), (x, y) in zip(places, line.points, strict=True)
    )
    return f'<polyline class="line" {_strokes(number)} points="{drawn}"/>{dots}'


def _label(number: int, line: Line) -> str:
    x, y = _LEFT + number % 3 * 220, HEIGHT + 4 + number // 3 * 18
    return (
        f'<line class="line" {_strokes(number)} x1="{x}" x2="{x + 26}" y1="{y}" y2="{y}"/>'
        f'<text x="{x + 32}" y="{y + 4}">{escape(line.label)}</text>'
    )
