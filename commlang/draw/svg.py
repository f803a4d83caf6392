"""A small writer of SVG: elements as text, escaped, and one style sheet for all pictures.

Colours are those of Okabe and Ito, which readers with any common colour blindness tell apart
(https://jfly.uni-koeln.de/color/); whatever a colour says is said by a label or a pattern too.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CHARACTER = 6.1
"""The mean width of a character at the size of labels (11), in pixels; a fallback font is wider."""

_CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow (https://www.w3.org/TR/xml/#charsets)."""

STYLE = """\
svg{--paper:#fff;--ink:#1a1a1a;--dim:#595959;--rule:#d9d9d9;--lane:#f5f5f5;--tint:.16;
--message:#0072b2;--recv:#56b4e9;--collective:#d55e00;--compute:#009e73;--local:#999;
--wait:#f0e442;--alarm:#cc0044;--measured:#cc79a7;--on:#fff;--on-light:#1a1a1a;
background:var(--paper);font:11px system-ui,sans-serif}
@media(prefers-color-scheme:dark){svg{--paper:#16181c;--ink:#ececec;--dim:#a8a8a8;--rule:#3a3d44;
--lane:#1f2228;--tint:.3;--message:#3d9bd6;--alarm:#ff5c8a;--local:#8b8b8b;--on:#101010}}
text{fill:var(--ink)}.dim{fill:var(--dim)}.title{font-size:14px;font-weight:600}
.small{font-size:10px}.mid{text-anchor:middle}.end{text-anchor:end}
.rule{stroke:var(--rule);fill:none}.lane{fill:var(--lane)}.alarm{fill:var(--alarm)}
"""


def clean(text: str) -> str:
    """Text that may stand in XML: escaped, without the characters that XML forbids."""
    return escape(_CONTROL.sub("�", text), quote=True)


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def element(name: str, *children: str, **attributes: object) -> str:
    """An element; children are elements, attributes are escaped.

    `_` in an attribute's name is `-`, a trailing one is dropped (`class_`), floats are rounded to
    a decimal, and what is None is left out.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            told = number(value) if isinstance(value, float) else clean(str(value))
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{told}"')
    head = " ".join(parts)
    return f"<{head}>{''.join(children)}</{name}>" if children else f"<{head}/>"


def text(x: float, y: float, words: str, **attributes: object) -> str:
    """A line of text with its baseline at y."""
    return element("text", clean(words), x=float(x), y=float(y), **attributes)


def label(
    x: float, y: float, words: str, width: float, *, short: str = "", **attributes: object
) -> str:
    """Text that fits a width in pixels: the words, else the short ones, else the words cut.

    The page shows what fits as the reader zooms in.
    """
    shown = next((w for w in (words, short) if w and len(w) * CHARACTER <= width), None)
    shown = fitted(short or words, width) if shown is None else shown
    known = {"data_t": words, "data_s": short or None, "data_w": float(width)}
    return text(x, y, shown, **known, **attributes)


def fitted(words: str, width: float) -> str:
    """As much of a text as fits a width; nothing at all if that would tell nothing."""
    room = int(width / CHARACTER)
    if len(words) <= room:
        return words
    return words[: room - 1] + "…" if room >= 4 else ""


def mark(tip: str, *children: str, **attributes: object) -> str:
    """Something to point at: the tip is shown on hover, and found by search in the page."""
    names = f"mark {attributes.pop('class_', '')}".strip()
    return element("g", element("title", clean(tip)), *children, class_=names, **attributes)


def document(
    width: float, height: float, body: Iterable[str], *, title: str, style: str = ""
) -> str:
    """A whole picture, whose size is in pixels; `title` says what it shows."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{number(width)}" '
        f'height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}">'
    )
    parts = [element("title", clean(title)), element("style", STYLE + style), *body]
    return "\n".join([head, *(part for part in parts if part), "</svg>\n"])
