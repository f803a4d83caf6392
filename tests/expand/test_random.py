"""Random patterns against the reference interpreter, whole, in small chunks and rank by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlang.errors import PatternError
from commlang.expand import expressions
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.reference.compare import assert_same, told_by_program
from tests.reference.generate import Writer
from tests.reference.interpreter import interpret
from tests.reference.values import Fault

if TYPE_CHECKING:
    from random import Random

    from commlang.resolve.modules import Definition

AGREEMENT = ("CL126", "CL127")
"""Faults of ranks that disagree, which no rank can see alone."""


def _faulty(definition: Definition, world: int) -> bool:
    for rank in range(world):
        try:
            interpret(definition, world, rank)
        except Fault:
            return True
    return False


@given(st.randoms(use_true_random=False), st.integers(1, 5), st.sampled_from((1, 3, 7)))
def test_a_random_pattern_means_what_the_reference_says(
    random: Random, world: int, lanes: int
) -> None:
    text = Writer(random).file()
    definition = load_module(Source(text, "random.cl")).symbols["main"]
    try:
        program = build(definition, world)
    except PatternError as error:
        if error.diagnostics[0].code in AGREEMENT or _faulty(definition, world):
            return
        raise
    assert_same(program)  # which raises Fault if the reference refuses the pattern
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expressions, "LANES", lanes)
        small = build(definition, world)
    for rank in range(world):
        rows = told_by_program(program, rank)
        assert told_by_program(small, rank) == rows
        alone = build(definition, world, ranks=[rank], groups=program.groups.entries[1:])
        assert told_by_program(alone, rank) == rows
        assert alone.groups.entries == program.groups.entries
