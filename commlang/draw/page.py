"""A picture as a page that needs nothing else: hover, zoom, pan and search over inline SVG."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from commlang.draw.svg import clean

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<input id="search" type="search" placeholder="search: rank 3, all_reduce, x.cl:9 ( / )" \
aria-label="search"><span id="count" role="status"></span>
<button id="out" title="smaller ( - ), or Ctrl and the wheel">−</button>
<button id="in" title="larger ( + ), or Ctrl and the wheel">+</button>
<button id="one" title="as it was ( 0 )">1:1</button>
<button id="all" title="all of it ( f )">fit</button>
</header>
<div id="stage">
{svg}</div>
<div id="tip" hidden></div>
<script>{script}</script>
</body>
</html>
"""


def page(svg: str, title: str) -> str:
    """A self-contained HTML page around a picture made by `commlang.draw.svg.document`.

    What is a `mark` there is shown in full under the pointer and found by the search. The page
    loads nothing, and by its own policy runs no script but the one in it.
    """
    script, style = _text("page.js"), _text("page.css")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return _PAGE.format(digest=digest, title=clean(title), style=style, svg=svg, script=script)


def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
