"""Which pictures there are: a function for each view and format, imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.draw.subject import Subject

FORMATS = ("svg", "html", "mermaid", "dot", "text")

VIEWS: dict[tuple[str, str], str] = {
    ("timeline", "svg"): "commlang.draw.timeline:svg",
    ("graph", "svg"): "commlang.draw.graph_svg:svg",
    ("graph", "mermaid"): "commlang.draw.graph_text:mermaid",
    ("graph", "dot"): "commlang.draw.graph_text:dot",
    ("graph", "text"): "commlang.draw.graph_text:text",
    ("matrix", "svg"): "commlang.draw.matrix_svg:svg",
    ("matrix", "text"): "commlang.draw.matrix_text:text",
    ("topology", "svg"): "commlang.draw.topology_svg:svg",
    ("topology", "text"): "commlang.draw.topology_text:text",
    ("timeline", "mermaid"): "commlang.draw.timeline_mermaid:mermaid",
    ("timeline", "dot"): "commlang.draw.timeline_dot:dot",
    ("timeline", "text"): "commlang.draw.timeline_text:text",
}
"""`module:function` by view and format; each function turns a Subject into the picture's text.

A view that has SVG has HTML too, which is that SVG in a page of `commlang.draw.page`.
"""


def formats_of(view: str) -> tuple[str, ...]:
    """The formats in which a view can be drawn, in the order of `FORMATS`."""
    have = {form for name, form in VIEWS if name == view}
    if "svg" in have:
        have.add("html")
    return tuple(form for form in FORMATS if form in have)


def refuse_other(view: str, form: str) -> None:
    """Raise UsageError for a pair of view and format that does not exist."""
    have = formats_of(view)
    if not have:
        views = ", ".join(dict.fromkeys(name for name, _ in VIEWS))
        raise UsageError(f"there is no view `{view}`; there are {views}")
    if form not in have:
        raise UsageError(f"a {view} cannot be drawn as {form}; it can as {', '.join(have)}")


def draw(subject: Subject, view: str = "timeline", form: str = "svg") -> str:
    """The picture of a view in a format; raises UsageError for a pair that does not exist."""
    refuse_other(view, form)
    if form == "html" and (view, form) not in VIEWS:
        from commlang.draw.page import page

        return page(_function(view, "svg")(subject), subject.title)
    return _function(view, form)(subject)


def _function(view: str, form: str) -> Callable[[Subject], str]:
    module, _, name = VIEWS[view, form].partition(":")
    return getattr(import_module(module), name)
