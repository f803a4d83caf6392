"""A picture as a page that needs nothing else: hover, zoom, pan and search over inline SVG."""

from __future__ import annotations

from commlang.draw.svg import clean

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
{svg}</body>
</html>
"""


def page(svg: str, title: str) -> str:
    """A self-contained HTML page around a picture made by `commlang.draw.svg.document`."""
    return _PAGE.format(title=clean(title), svg=svg)
