"""Every contract of the library is proven in many worlds, and refuted once a pattern is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commlang.errors import PatternError
from commlang.expand.run import parameter_names
from commlang.program import build
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.syntax import ast
from tests.contracts.proofs import findings

PATTERNS = Path(__file__).parents[2] / "patterns"
WORLDS = (1, 2, 3, 4, 5, 6, 8, 12)
SMALL = {"n": 13, "p": 24, "b": 2, "ny": 4, "nx": 5, "heads": 120, "d": 2, "layers": 3, "micro": 4}
DIMS = {
    "to_heads": {"s": 2},
    "to_sequence": {"s": 2},
    "route": {"h": 3},
    "ring_attention": {"s": 3, "h": 2},
    "training_step_3d": {"h": 4},
}


def _definitions() -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for path in sorted(PATTERNS.rglob("*.cl")):
        module = load_module(Source.read(path))
        for name in module.exported:
            definition = module.symbols[name]
            if any(isinstance(s, ast.Ensure) for s in definition.node.body):
                found[f"{path.stem}-{name}"] = definition
    return found


DEFINITIONS = _definitions()


def _values(definition: Definition, world: int) -> dict[str, Any]:
    names = parameter_names(definition.node)
    values: dict[str, Any] = {k: v for k, v in SMALL.items() if k in names}
    values |= DIMS.get(definition.node.name, {})
    if "counts" in names:
        values["counts"] = [[1 + (s + 2 * d) % 3 for d in range(world)] for s in range(world)]
    return values


def _runs(definition: Definition, world: int, values: dict[str, Any]) -> bool:
    """Whether every `require` holds in a world."""
    try:
        build(definition, world, values)
    except PatternError as error:
        if [d.code for d in error.diagnostics] == ["CL124"]:
            return False
        raise
    return True


@pytest.mark.parametrize("key", DEFINITIONS)
def test_every_contract_is_proven(key: str) -> None:
    definition = DEFINITIONS[key]
    proven = 0
    for world in WORLDS:
        values = _values(definition, world)
        if _runs(definition, world, values):
            assert [d.render() for d in findings(definition, world, values)] == []
            proven += 1
    assert proven >= 2


def test_these_are_the_patterns_that_promise_something() -> None:
    assert len(DEFINITIONS) >= 40


OPS = ("product", "min", "max", "band", "bor", "bxor")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    "name", ["ring_all_reduce", "recursive_doubling_all_reduce", "tree_all_reduce"]
)
def test_reductions_are_proven_for_every_op(name: str, op: str) -> None:
    """In recursive doubling for other worlds than powers of two, contributions meet twice."""
    text = (PATTERNS / "point_to_point" / f"{name}.cl").read_text(encoding="utf-8")
    source = Source(text.replace("float32", "int64"), str(PATTERNS / "point_to_point" / "x.cl"))
    definition = load_module(source).symbols[name]
    for world in (3, 4, 8):
        values = {"n": 13, "op": op}
        if _runs(definition, world, values):
            assert [d.render() for d in findings(definition, world, values)] == []


MUTANTS = [
    ("point_to_point/ring_all_reduce", 4, "range(world - 1)", "range(world - 2)"),
    ("point_to_point/ring_all_reduce", 5, ", op=op\n", "\n"),
    ("point_to_point/ring_all_gather", 4, "range(world - 1)", "range(world - 2)"),
    ("point_to_point/pairwise_all_to_all", 4, "x[rank] -> got[rank]", "pass"),
    ("point_to_point/binomial_reduce", 6, "op=op\n", "op=max\n"),
    ("collectives/all_reduce", 4, "op=op)", "op=avg)"),
    ("collectives/broadcast", 4, "src=root", "src=(root + 1) % world"),
    ("collectives/reduce_scatter", 3, "x.chunks(world), op=op", "x.chunks(world), op=max"),
    (
        "collectives/all_gather_into_tensor",
        3,
        "(rows, row)",
        "(rows, row)\n    scale(row, 2)\n    row -> rows[0]",
    ),
    ("hierarchical/hierarchical_all_reduce", 16, "group=inter", "group=intra"),
    ("training/ddp_step", 4, "op=avg)", "op=sum)"),
    ("training/zero1_step", 4, "all_gather(parts, parts[rank])", "all_gather(grads, grads[rank])"),
    ("training/parameter_server", 4, "ranks[1:]:", "ranks[2:]:"),
    ("training/halo_exchange", 4, "cells[:, 0] -> edge[0]", "cells[:, 1] -> edge[0]"),
    ("training/sequence_parallel_layer", 4, "all_gather_single(full, x)", "fill(full, 0)"),
]


@pytest.mark.parametrize(("path", "world", "old", "new"), MUTANTS)
def test_a_broken_pattern_is_refuted(path: str, world: int, old: str, new: str) -> None:
    file = PATTERNS / f"{path}.cl"
    text = file.read_text(encoding="utf-8")
    assert old in text
    head, body = text.split("    ensure ", 1)
    broken = f"{head}    ensure {body.replace(old, new)}"
    symbols = load_module(Source(broken, str(file))).symbols
    definition = symbols[file.stem if file.stem in symbols else "main"]
    found = findings(definition, world, _values(definition, world))
    assert found
    assert {d.code for d in found} == {"CL240"}, [d.render() for d in found]
    starts = [d.labels[0].source.text[d.labels[0].span.start :] for d in found]
    assert all(start.startswith("ensure") for start in starts)
