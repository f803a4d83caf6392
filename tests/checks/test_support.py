"""What backends can do: the table against real gloo, against the library, and its answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commlang.checks.facts import gather_facts
from commlang.dtypes import DTYPES
from commlang.expand.binding import is_tensor
from commlang.operations import OPERATIONS, REDUCE_OPS
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.syntax import ast
from commlang.transports import PORTABLE, RENDEZVOUS, Backend, Target
from commlang.transports.support import Aspect, backings, called, ops_of, refusal, supports

ROOT = Path(__file__).parents[2]
MEASURE = ROOT / "benchmarks" / "gloo_support.py"
LIBRARY = sorted((ROOT / "patterns").rglob("*.cl"))

SAMPLE = {
    "barrier": "yes",
    "send/float8_e5m2": "yes",
    "send/uint64": "yes",
    "broadcast/complex64": "yes",
    "broadcast/int16": "refused",
    "gather/bool": "yes",
    "gather/complex64": "refused",
    "scatter/complex128": "yes",
    "all_gather uneven/bfloat16": "yes",
    "all_to_all uneven/int64": "yes",
    "all_to_all_single/float8_e4m3fn": "refused",
    "all_reduce/bool/sum": "yes",
    "all_reduce/int32/avg": "refused",
    "all_reduce/float16/avg": "yes",
    "all_reduce/complex32/avg": "yes",
    "all_reduce/float32/band": "refused",
    "all_reduce/uint8/bxor": "yes",
    "all_reduce/complex64/max": "refused",
    "all_reduce/float64/premul_sum": "refused",
    "reduce/complex32/avg": "refused",
    "reduce/complex64/sum": "yes",
    "reduce_scatter/int8/product": "yes",
    "reduce_scatter uneven/complex32/avg": "yes",
    "reduce_scatter_single/uint32/sum": "refused",
    "accumulate/uint16/band": "yes",
    "accumulate/uint16/sum": "refused",
    "accumulate/float32/bor": "refused",
    "scale/float8_e5m2": "refused",
    "scale/bool": "refused",
}


@pytest.mark.timeout(320)
def test_gloo_and_torch_do_what_the_table_says() -> None:
    done = subprocess.run(
        [sys.executable, str(MEASURE), "--json", *SAMPLE],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = {cell: said.split(":")[0] for cell, said in json.loads(done.stdout).items()}
    assert told == SAMPLE
    assert {cell: _tabled(cell) for cell in SAMPLE} == SAMPLE


def _tabled(cell: str) -> str:
    name, dtype, op = [*cell.split("/"), "", ""][:3]
    backend = "torch" if name in ("accumulate", "scale") else "gloo"
    operation = called(name.removesuffix(" uneven"), backend, uneven=name.endswith("uneven"))
    return "yes" if supports(backend, operation, dtype or None, op or None) else "refused"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (("nccl", "all_reduce", "float32", "sum", "cuda"), None),
        (("nccl", "all_reduce", "float32", "premul_sum", "cuda"), None),
        (("nccl", "all_reduce", "bfloat16", "avg", "cuda"), None),
        (("nccl", "all_reduce", "int32", "band", "cuda"), Aspect.OP),
        (("nccl", "all_reduce", "bool", "avg", "cuda"), Aspect.OP),
        (("nccl", "all_reduce", "complex64", "max", "cuda"), Aspect.OP),
        (("nccl", "all_reduce", "int16", "sum", "cuda"), Aspect.DTYPE),
        (("nccl", "broadcast", "float8_e8m0fnu", None, "cuda"), Aspect.DTYPE),
        (("nccl", "send", "float8_e4m3fnuz", None, "cuda"), None),
        (("nccl", "all_reduce", "float8_e4m3fnuz", "sum", "cuda"), Aspect.OP),
        (("nccl", "barrier", None, None, "cpu"), Aspect.DEVICE),
        (("gloo", "send", "float32", None, "cuda"), Aspect.DEVICE),
        (("gloo", "all_reduce", "float32", "sum", "cuda"), None),
        (("mpi", "all_reduce", "int16", "max", "cpu"), None),
        (("mpi", "all_reduce", "float32", "avg", "cpu"), None),
        (("mpi", "all_reduce", "int64", "avg", "cpu"), Aspect.OP),
        (("mpi", "all_reduce", "float8_e5m2", "sum", "cpu"), Aspect.DTYPE),
        (("mpi", "send", "float8_e5m2", None, "cpu"), None),
        (("mpi", "broadcast", "float32", None, "cuda"), Aspect.DEVICE),
        (("mpi", "all_reduce", "complex64", "sum", "cpu"), None),
        (("ucc", "all_reduce", "bool", "bor", "cpu"), None),
        (("ucc", "broadcast", "complex64", None, "cpu"), Aspect.DTYPE),
        (("torch", "accumulate", "int16", "max", "cpu"), None),
    ],
)
def test_questions_are_answered(question: tuple[str, ...], answer: Aspect | None) -> None:
    assert refusal(*question) is answer


def test_releases_of_torch_differ() -> None:
    avg = ("gloo", "all_reduce", "float32", "avg", "cpu")
    assert refusal(*avg, torch_version="2.7.1") is Aspect.OP
    assert refusal(*avg, torch_version="2.8.0+cpu") is None
    assert refusal("gloo", "reduce_scatter", torch_version="2.7") is Aspect.OPERATION
    assert refusal("gloo", "reduce_scatter", torch_version="2.14.0.dev20260101") is None


def test_a_list_of_unequal_lengths_is_called_as_what_takes_it() -> None:
    assert called("all_gather", "gloo", uneven=True) == "all_gather_single"
    assert called("reduce_scatter", "mpi", uneven=True) == "all_reduce"
    assert called("all_to_all", "gloo", uneven=True) == "all_to_all_single"
    assert called("reduce_scatter", "nccl", uneven=True) == "reduce_scatter"
    assert called("reduce_scatter", "gloo") == "reduce_scatter"
    assert called("all_gather_into_tensor", "gloo") == "all_gather_single"


def test_an_unknown_backend_is_no_answer() -> None:
    with pytest.raises(KeyError):
        supports("smoke", "send")


def test_the_table_names_only_what_there_is() -> None:
    local = {"accumulate", "copy"}
    for name, backing in backings().items():
        assert set(backing.operations) <= set(OPERATIONS) | local
        for entry in (backing, *backing.operations.values()):
            assert entry.devices <= {"cpu", "cuda"}
            assert entry.dtypes <= set(DTYPES)
            assert set(entry.reduce) <= set(REDUCE_OPS)
            assert all(dtypes <= set(DTYPES) for dtypes in entry.reduce.values())
        assert set(backing.since) <= set(OPERATIONS) | set(REDUCE_OPS)
        assert backing.docs.startswith("https://"), name


def test_ops_are_listed_in_the_order_of_the_table() -> None:
    assert ops_of("gloo", "all_reduce", "int32") == [
        *("sum", "product", "min", "max", "band", "bor", "bxor"),
    ]
    assert ops_of("gloo", "reduce", "complex32") == ["sum"]


def refused(text: str, target: Target = PORTABLE, world: int = 4) -> list[tuple[str, Aspect]]:
    program = build(load_module(Source(text, "t.cl")).symbols["main"], world)
    return [(r.operation, r.aspect) for r in gather_facts(program, target).refusals]


EITHER = """\
pattern main(y: complex32[share(n, world, rank)], x: complex32[n], n = 9):
    reduce_scatter(y, x.chunks(world), op=avg)
"""


def test_it_matters_whether_lists_are_uneven() -> None:
    gloo = Target(Backend.GLOO)
    assert refused(EITHER, gloo, world=2) == []  # an all_reduce
    assert refused(EITHER, gloo, world=3) == [("reduce_scatter", Aspect.OP)]


LANES = """\
pattern main(x: int32[n], y: int16[n], z: float32[n], n = 8):
    all_reduce(x, op=avg)
    all_reduce(y)
    all_reduce(z, op=premul_sum(1 / 2))
    all_reduce(z, op=bor)
    parallel for r in ranks:
        y @ r -> y @ (r + 1) % world
"""


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (PORTABLE, [("all_reduce", Aspect.OP)]),
        (RENDEZVOUS, [("all_reduce", Aspect.OP)]),
        (
            Target(Backend.GLOO),
            [("all_reduce", a) for a in (Aspect.OP, Aspect.DTYPE, Aspect.OP, Aspect.OP)],
        ),
        (
            Target(Backend.NCCL),
            [
                ("all_reduce", Aspect.DTYPE),
                ("all_reduce", Aspect.OP),
                ("send", Aspect.DTYPE),  # and so the recv of that line
            ],
        ),
        (Target(Backend.MPI), [("all_reduce", Aspect.OP)] * 3),
        (Target(device="cpu"), [("all_reduce", Aspect.OP)] * 2),
    ],
)
def test_without_a_backend_only_what_none_does_is_told(
    target: Target, found: list[tuple[str, Aspect]]
) -> None:
    assert refused(LANES, target) == found


def test_each_place_is_told_once_however_often_it_runs() -> None:
    text = (
        "pattern main(x: int16[n], n = 8):\n"
        "    for step in range(3):\n"
        "        inner(x)\n"
        "    inner(x)\n"
        "\n"
        "pattern inner(x: int16[n], n = 8):\n"
        "    all_reduce(x)\n"
    )
    assert refused(text, Target(Backend.GLOO)) == [("all_reduce", Aspect.DTYPE)]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_gloo_can_do_the_whole_library(path: Path) -> None:
    module = load_module(Source.read(path))
    chosen = [module.symbols[name] for name in module.exported]
    patterns = [d for d in chosen if isinstance(d.node, ast.Pattern)]
    assert patterns
    for definition in patterns:
        asked = {p.target.id for p in definition.node.params if not is_tensor(p)}
        small = dict.fromkeys(asked & {"b", "h", "n"}, 8)
        for target in (Target(Backend.GLOO), PORTABLE):
            assert gather_facts(build(definition, 4, small), target).refusals == []
