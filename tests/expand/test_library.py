"""Every shipped pattern, row by row, against the reference interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlang.checks import check_program
from commlang.errors import PatternError
from commlang.expand import expressions
from commlang.expand.run import parameter_names
from commlang.program import Program, build
from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.reference.compare import assert_same, told_by_program

if TYPE_CHECKING:
    from commlang.resolve.modules import Definition

FOLDER = Path(__file__).parents[2] / "patterns"
SMALL = {"n": 37, "h": 12, "b": 2, "ny": 5, "nx": 4, "s": 6, "p": 240}
"""Sizes that most worlds do not divide, where a pattern has such parameters; `p` must."""


def _definitions() -> list[object]:
    found: list[object] = []
    for path in sorted(FOLDER.rglob("*.cl")):
        module = load_module(Source.read(path))
        found += [
            pytest.param(module.symbols[name], id=f"{path.stem}-{name}") for name in module.exported
        ]
    return found


def _values(definition: Definition) -> dict[str, Any]:
    names = parameter_names(definition.node)
    return {name: value for name, value in SMALL.items() if name in names}


def _build(definition: Definition, world: int, **options: Any) -> Program | None:
    """The program, or None where the pattern requires another world or other sizes."""
    try:
        return build(definition, world, _values(definition), **options)
    except PatternError as error:
        if {d.code for d in error.diagnostics} <= {"CL112", "CL124"}:
            return None
        raise


@pytest.mark.parametrize("definition", _definitions())
def test_the_rows_of_a_pattern_are_those_of_the_reference(definition: Definition) -> None:
    compared = 0
    for world in (1, 2, 3, 4, 6, 8):
        program = _build(definition, world)
        if program is not None:
            compared += assert_same(program, _values(definition))
    assert compared


@pytest.mark.parametrize("definition", _definitions())
def test_chunks_of_lanes_and_single_ranks_change_nothing(
    definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _build(definition, 4)
    if whole is None:
        pytest.skip("not for four ranks")
    rows = [told_by_program(whole, rank) for rank in range(4)]
    findings = [d.render() for d in check_program(whole)]
    for lanes in (1, 7):
        monkeypatch.setattr(expressions, "LANES", lanes)
        small = _build(definition, 4)
        assert small is not None
        assert [told_by_program(small, rank) for rank in range(4)] == rows
        assert [d.render() for d in check_program(small)] == findings
    for rank in range(4):
        alone = _build(definition, 4, ranks=[rank], groups=whole.groups.entries[1:])
        assert alone is not None
        assert told_by_program(alone, rank) == rows[rank]
        assert alone.groups.entries == whole.groups.entries
