"""The pattern library as text and as programs: well written, and clean in every world it takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlang.checks import check_program
from commlang.errors import PatternError
from commlang.expand.run import parameter_names
from commlang.operations import Kind
from commlang.program import build
from commlang.resolve.check import check_all
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.syntax import ast
from commlang.syntax.formatter import format_source
from commlang.verify import choose_pattern
from commlang.verify.values import preset_values, presets

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program.columns import Program

ROOT = Path(__file__).parents[2] / "patterns"
FILES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in ROOT.rglob("*.cl")}
MODULES = {name: load_module(Source.read(path)) for name, path in sorted(FILES.items())}
DEFINITIONS = {
    f"{name}:{pattern}": module.symbols[pattern]
    for name, module in MODULES.items()
    for pattern in module.exported
}
GENERIC = [k for k, d in DEFINITIONS.items() if "dtype" in parameter_names(d.node)]
PRESETS = [(key, preset) for key, found in DEFINITIONS.items() for preset in presets(found)]

WORLDS = (*range(1, 10), 12, 16)
REFUSED = "CL124"
"""The code of a `require` that does not hold."""

MOST_EVENTS = 500_000
"""Linting a file expands all its presets, which should stay a matter of a moment."""

HELPERS = {"halve_and_double", "route", "to_heads", "to_sequence"}
"""Parts of the pattern that their file is named after."""


def _several(world: int) -> bool:
    return world > 1


def _power_of_two(world: int) -> bool:
    return world & (world - 1) == 0


def _divides(number: int) -> Callable[[int], bool]:
    return lambda world: number % world == 0


def _multiple(number: int) -> Callable[[int], bool]:
    return lambda world: world % number == 0


TAKES: dict[str, Callable[[int], bool]] = {
    "collectives/batch:main": _several,
    "collectives/isend_irecv:main": _several,
    "collectives/send_recv:main": _several,
    "hierarchical/hierarchical_all_reduce:hierarchical_all_reduce": _multiple(2),
    "hierarchical/hierarchical_broadcast:hierarchical_broadcast": _multiple(2),
    "pipeline/interleaved_1f1b:interleaved_1f1b": _several,
    "point_to_point/halving_doubling_all_reduce:halve_and_double": _power_of_two,
    "point_to_point/recursive_doubling_all_gather:recursive_doubling_all_gather": _power_of_two,
    "point_to_point/recursive_doubling_all_reduce:recursive_doubling_all_reduce": _power_of_two,
    "point_to_point/recursive_halving_reduce_scatter:recursive_halving_reduce_scatter": (
        _power_of_two
    ),
    "training/fsdp_step:fsdp_step": _divides(192 << 10),
    "training/halo_exchange:halo_exchange": _multiple(2),
    "training/parameter_server:parameter_server": _several,
    "training/sequence_parallel_layer:sequence_parallel_layer": _divides(192),
    "training/tensor_parallel_layer:tensor_parallel_layer": _divides(4 * 384),
    "training/training_step_3d:training_step_3d": _multiple(4),
    "training/ulysses:ulysses": _divides(24),
    "training/ulysses:to_heads": _divides(24),
    "training/ulysses:to_sequence": _divides(24),
}
"""The worlds that a pattern takes with its defaults; all others take every world."""


def _built(definition: Definition, world: int, values: dict[str, Any]) -> Program | None:
    """The program, without a finding; None if a `require` does not hold."""
    try:
        program = build(definition, world, values)
    except PatternError as error:
        if [found.code for found in error.diagnostics] == [REFUSED]:
            return None
        raise
    assert [found.render() for found in check_program(program)] == []
    return program


def _docstring(definition: Definition) -> str:
    doc = definition.node.doc
    return doc.value.strip() if doc else ""


# ------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("name", MODULES)
def test_it_is_formatted_and_has_no_static_findings(name: str) -> None:
    module = MODULES[name]
    assert format_source(module.source) == module.source.text
    assert [found.render() for found in check_all(module)] == []
    assert max(map(len, module.source.text.splitlines())) <= 100


@pytest.mark.parametrize("name", MODULES)
def test_every_definition_says_what_it_is(name: str) -> None:
    module = MODULES[name]
    for node in module.definitions():
        summary = _docstring(module.symbols[node.name]).split("\n")[0]
        assert re.fullmatch(r"\w.*\w.*\.", summary), f"{node.name}: {summary or 'no docstring'}"


@pytest.mark.parametrize("name", [n for n in MODULES if n.startswith("collectives/")])
def test_an_example_of_an_operation_names_it_first(name: str) -> None:
    head = _docstring(DEFINITIONS[f"{name}:main"]).split(":")[0]
    stem = name.split("/")[1]
    named = {"batch": "parallel", "isend_irecv": "isend and irecv", "send_recv": "send and recv"}
    uneven = {"all_to_all_single_uneven": "all_to_all_single with split sizes"}
    assert head == (named | uneven).get(stem, stem)


def test_algorithms_state_their_contract_and_steps() -> None:
    algorithms = [k for k in DEFINITIONS if k.startswith("point_to_point/")]
    assert len(algorithms) >= 17
    for key in algorithms:
        node = DEFINITIONS[key].node
        assert any(isinstance(s, ast.Ensure) for s in node.body), key
        assert node.name in HELPERS or " steps" in _docstring(DEFINITIONS[key]), key


# ------------------------------------------------------------------------------------- names


def test_names_are_unique() -> None:
    stems = [name.split("/")[1] for name in MODULES]
    assert len(set(stems)) == len(stems) >= 53
    patterns = [d.node.name for d in DEFINITIONS.values() if d.node.name != "main"]
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize("name", MODULES)
def test_its_chief_pattern_can_be_imported(name: str, tmp_path: Path) -> None:
    stem = name.split("/")[1]
    chief = choose_pattern(MODULES[name]).node.name
    assert chief == ("main" if name.startswith("collectives/") else stem)
    assert set(MODULES[name].exported) - {chief} <= HELPERS
    for path in (stem, name.replace("/", ".")):
        text = f"from {path} import {chief} as it\n"
        module = load_module(Source(text, str(tmp_path / "mine.cl")))
        found = module.symbols["it"]
        assert found.node.name == chief
        assert Path(found.module.source.path).resolve() == FILES[name].resolve()


# ---------------------------------------------------------------------------------- programs


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("key", DEFINITIONS)
def test_it_is_clean_in_the_worlds_that_it_takes(key: str, world: int) -> None:
    takes = TAKES.get(key, lambda _: True)
    assert (_built(DEFINITIONS[key], world, {}) is not None) == takes(world)


def test_the_table_of_worlds_names_patterns() -> None:
    assert set(TAKES) <= set(DEFINITIONS)


@pytest.mark.parametrize(("key", "preset"), PRESETS)
def test_a_preset_is_clean(key: str, preset: str) -> None:
    world, values = preset_values(DEFINITIONS[key], preset)
    assert world is not None, "a preset of the library says for how many ranks it is"
    program = _built(DEFINITIONS[key], world, values)
    assert program is not None, "a `require` does not hold"
    assert 0 < len(program) < MOST_EVENTS


@pytest.mark.parametrize("key", GENERIC)
def test_a_dtype_can_be_chosen(key: str) -> None:
    program = _built(DEFINITIONS[key], 4, {"dtype": "float64"})
    assert program is not None
    assert {str(block.dtype) for block in program.buffers} == {"float64"}


def test_the_algorithms_take_any_dtype() -> None:
    chosen = ("point_to_point/", "hierarchical/")
    wanted = {key for key in DEFINITIONS if key.startswith(chosen)}
    assert len(wanted) >= 20
    assert wanted <= set(GENERIC)


def test_the_dtype_is_that_of_the_tensor_given() -> None:
    text = """\
from hierarchical_all_reduce import hierarchical_all_reduce

pattern mine(x: bfloat16[17], y: int8[5]):
    hierarchical_all_reduce(x)
    hierarchical_all_reduce(y, op=max, node=4)
"""
    module = load_module(Source(text, "mine.cl"))
    assert check_all(module) == []
    program = _built(module.symbols["mine"], 8, {})
    assert program is not None
    sent = {str(site.dtype) for site in program.sites if site.kind is Kind.SEND}
    assert sent == {"bfloat16", "int8"}
    assert {str(block.dtype) for block in program.buffers} == {"bfloat16", "int8"}


@pytest.mark.parametrize("n", [1, 5, 1000, 1003])
@pytest.mark.parametrize(("world", "node"), [(4, 4), (4, 1), (6, 3), (6, 2), (12, 4)])
def test_a_hierarchy_takes_any_length_and_any_nodes(n: int, world: int, node: int) -> None:
    name = "hierarchical/hierarchical_all_reduce"
    definition = MODULES[name].symbols["hierarchical_all_reduce"]
    assert _built(definition, world, {"n": n, "node": node}) is not None


@pytest.mark.parametrize("root", [1, 4])
@pytest.mark.parametrize("world", [5, 6, 8])
def test_any_rank_can_be_the_root(world: int, root: int) -> None:
    rooted = [k for k, d in DEFINITIONS.items() if "root" in parameter_names(d.node)]
    assert len(rooted) >= 8
    for key in rooted:
        takes = TAKES.get(key, lambda _: True)
        assert (_built(DEFINITIONS[key], world, {"root": root}) is not None) == takes(world), key
