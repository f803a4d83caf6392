"""Building programs from short texts, and comparing them with the reference interpreter."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from commlang.program import Program, build
from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.reference.compare import assert_same, told_by_program

if TYPE_CHECKING:
    from commlang.resolve.modules import Definition

Checked = Callable[..., Program]
HEAD = "pattern main(x: float32[n], y: float32[n], n = 24):\n"


def definition_of(text: str) -> Definition:
    """The pattern `main` of a text; statements alone get a pattern around them."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    if "pattern main" not in text:
        text = HEAD + textwrap.indent(text, "    ")
    return load_module(Source(text, "test.cl")).symbols["main"]


def _checked(text: str, world: int = 4, values: dict[str, Any] | None = None) -> Program:
    program = build(definition_of(text), world, values)
    assert_same(program, values)
    return program


@pytest.fixture
def checked() -> Checked:
    """Build a program, having compared each of its rows with what the reference says."""
    return _checked


def rows(program: Program, rank: int) -> list[str]:
    """The events of one rank as short texts: `send->1 x[0:4]`."""
    return [_short(event) for event in told_by_program(program, rank)]


def _short(event: dict[str, Any]) -> str:
    text = event["name"]
    if event["peer"] >= 0:
        text += f"{'<-' if event['kind'] == 'RECV' else '->'}{event['peer']}"
    for operand in event["operands"]:
        elements = operand["elements"]
        part = f"{elements[0]}:{elements[-1] + 1}" if elements else ""
        text += f" {operand['buffer'][0]}[{part}]"
    return text
