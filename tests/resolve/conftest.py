"""Findings of a text as short lines, so that a test reads as input and output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from commlang.resolve.check import check_module
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic

Lines = Callable[[str], list[str]]

HEAD = """\
extern work(t: update float32[m], k: int, scale = 1)
pattern other(x: float32[n], root, n = 4):
    pass
pattern main(x: float32[n], y: float32[n], z: float32[n, n], counts: int[w, w], n = 8, op = sum):
"""


def _lines(found: list[Diagnostic], lines_above: int = 0, indent: int = 0) -> list[str]:
    result: list[str] = []
    for finding in found:
        label = finding.labels[0]
        line, column = label.source.position(label.span.start)
        place = f"{line - lines_above}:{column - indent}"
        hint = f" | {finding.help}" if finding.help else ""
        result.append(f"{place} {finding.code} {finding.message}{hint}")
    return result


@pytest.fixture
def findings() -> Lines:
    """Check a whole text; each finding is `line:column CODE message | help`."""
    return lambda text: _lines(check_module(load_module(Source(text))))


@pytest.fixture
def body() -> Lines:
    """Check the statements of a pattern with `HEAD` above; places count from the first of them."""

    def check(text: str) -> list[str]:
        inside = "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))
        found = check_module(load_module(Source(HEAD + inside)))
        return _lines(found, HEAD.count("\n"), 4)

    return check
