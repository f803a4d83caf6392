"""Contracts of a text, proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.facts import gather_facts
from commlang.contracts import prove
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Definition


def findings(
    definition: Definition, world: int, values: Mapping[str, Any] | None = None
) -> list[Diagnostic]:
    """What is said of the contracts of a pattern."""
    facts = gather_facts(build(definition, world, values))
    assert facts.everything_meets
    assert not facts.deadlock
    return prove(facts.program, facts.tagged, facts.collectives)


def codes(text: str, world: int) -> list[str]:
    """The codes of what is said of the contracts of `main`."""
    definition = load_module(Source(text, "case.cl")).symbols["main"]
    return [found.code for found in findings(definition, world)]
