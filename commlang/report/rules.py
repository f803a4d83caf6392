"""Pages of rules as text for a terminal, and all of them as `docs/rules.md`.

`python -m commlang.report.rules` prints the document.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from commlang.checks.pages import by_group, pages

if TYPE_CHECKING:
    from commlang.checks.pages import Page

_BOLD, _RED, _CYAN, _RESET = (f"\033[{code}m" for code in ("1", "1;31", "36", "0"))
_LINK = re.compile(r"\[([^]]+)]\(([^)]+)\)")
_MARK = re.compile(r"  # CL\d{3}$", re.MULTILINE)

_HEAD = """\
# Rules

What `commlang lint` reports, by code. This page is made from the rules themselves: `commlang rule
CODE` prints one of its sections, `commlang rule` lists all. [linting.md](linting.md) says how to
select rules and how to silence a finding.

A finding is an **error** (the pattern is refused), a **warning** (a hazard, or something that is
hardly meant) or **advice** (given on request, but for contracts that could not be decided). In an
example, a comment such as `# CL201` marks the line on which the finding stands; the comments at the
top say for what it was checked (else 4 ranks, and no backend in particular).
"""


def render_page(page: Page, *, colour: bool = False) -> str:
    """A rule's page for a terminal; ends without a newline."""
    rule = page.rule
    head = _paint(f"{rule.code} {rule.name}", _BOLD, colour) + f" ({rule.severity})"
    text = _LINK.sub(_spelt, page.text)
    parts = [head, page.title, text]
    for name, examples in (("Wrong", rule.invalid), ("Right", rule.valid)):
        for example in examples:
            lines = [f"    {line}".rstrip() for line in example.strip("\n").split("\n")]
            shown = _MARK.sub(lambda m: _paint(m[0], _RED, colour), "\n".join(lines))
            parts.append(f"{_paint(f'{name}:', _BOLD, colour)}\n\n{shown}")
    return "\n\n".join(parts)


def render_list(*, colour: bool = False) -> str:
    """All rules by group, a line each; ends without a newline."""
    width = max(len(page.rule.name) for page in pages().values())
    blocks: list[str] = []
    for group, found in by_group().items():
        lines = [_paint(group, _BOLD, colour)]
        for page in found:
            code = _paint(page.rule.code, _CYAN, colour)
            lines.append(f"  {code}  {page.rule.name:<{width}}  {page.title}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def rules_document() -> str:
    """`docs/rules.md`."""
    parts = [_HEAD, _contents()]
    for group, found in by_group().items():
        parts.append(f"## {group}\n")
        parts += [_section(page) for page in found]
    return "\n".join(parts)


def _spelt(link: re.Match[str]) -> str:
    """A link for those who cannot follow one: its address, or the document."""
    text, target = link.groups()
    return f"{text}: {target}" if ":" in target else f"{text} (docs/{target.partition('#')[0]})"


def _contents() -> str:
    lines: list[str] = []
    for group, found in by_group().items():
        lines += [f"| {group} | | |", "|---|---|---|"]
        lines += [
            f"| [{p.rule.code}](#{_anchor(p)}) | {p.rule.name} | {p.rule.severity} |" for p in found
        ]
        lines.append("")
    return "\n".join(lines)


def _section(page: Page) -> str:
    rule = page.rule
    parts = [f"### {rule.code} {rule.name}\n\n{page.title} ({rule.severity}).\n\n{page.text}\n"]
    for name, examples in (("Wrong", rule.invalid), ("Right", rule.valid)):
        parts += [f"{name}:\n\n```commlang\n{text.strip(chr(10))}\n```\n" for text in examples]
    return "\n".join(parts)


def _anchor(page: Page) -> str:
    return f"{page.rule.code.lower()}-{page.rule.name}"


def _paint(text: str, tone: str, colour: bool) -> str:
    return f"{tone}{text}{_RESET}" if colour else text


if __name__ == "__main__":
    sys.stdout.write(rules_document())
