"""Every view and format that is listed exists, and pages need nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from commlang.draw import FORMATS, VIEWS, Subject, draw, formats_of
from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program


def test_each_view_is_a_function() -> None:
    for (_, form), name in VIEWS.items():
        module, _, function = name.partition(":")
        assert callable(getattr(import_module(module), function))
        assert form in FORMATS


def test_a_view_with_svg_has_a_page() -> None:
    assert formats_of("timeline") == ("svg", "html", "mermaid", "dot", "text")
    assert formats_of("nothing") == ()


def test_what_does_not_exist_is_told(
    program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject(program("all_reduce", 2))
    monkeypatch.delitem(VIEWS, ("timeline", "dot"))
    with pytest.raises(UsageError, match="cannot be drawn as dot; it can as svg, html, mermaid, t"):
        draw(subject, "timeline", "dot")
    with pytest.raises(UsageError, match="there is no view `pie`; there are timeline"):
        draw(subject, "pie", "svg")


def test_a_page_loads_nothing_and_runs_its_own_script_only(
    program: Callable[..., Program],
) -> None:
    page = draw(Subject(program("all_reduce", 2)), form="html")
    addresses = set(re.findall(r"\w+://[^\s\"']+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\s(src|href|on\w+)=", page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page


def test_the_script_knows_how_wide_characters_are() -> None:
    from commlang.draw.page import _text  # pyright: ignore[reportPrivateUsage]
    from commlang.draw.svg import CHARACTER

    assert f"const CHARACTER = {CHARACTER};" in _text("page.js")
