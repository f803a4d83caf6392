"""Advice on speed: given to those who ask, right on the library, and mended where mechanical."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commlang.checks import check_program
from commlang.checks.selection import DEFAULT, Selection
from commlang.diagnostics import Diagnostic, Severity
from commlang.expand.binding import is_tensor
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.syntax import ast
from commlang.transports import PORTABLE, Backend, Target
from commlang.verify import Options
from commlang.verify.fix import mend

LIBRARY = Path(__file__).parents[2] / "patterns"
ADVICE = Selection(select=("CL4",), ignore=())
GLOO = Target(Backend.GLOO)

GIVEN = {
    ("all_to_all", "CL406", 9),
    ("parameter_server", "CL408", 15),
    ("parameter_server", "CL408", 17),
    ("star_all_reduce", "CL408", 15),
    ("star_all_reduce", "CL408", 20),
}
"""What the library gets: its example of a list form, and the stars that it shows for what they
are."""
ACROSS_NODES = {
    ("all_reduce", "CL411", 10),
    ("broadcast", "CL411", 5),
    ("ddp_step", "CL411", 28),
}
"""What it gets besides where there are several nodes: the flat ones of it."""


def advice(text: str, target: Target = PORTABLE, world: int = 4) -> list[Diagnostic]:
    program = build(load_module(Source(text, "t.cl")).symbols["main"], world)
    return check_program(program, target, ADVICE)


def codes(text: str, target: Target = PORTABLE, world: int = 4) -> list[str]:
    return [found.code for found in advice(text, target, world)]


def given(target: Target, world: int, **small: int) -> set[tuple[str, str, int]]:
    """The advice on the library, as (file, code, line)."""
    found: set[tuple[str, str, int]] = set()
    for path in sorted(LIBRARY.rglob("*.cl")):
        module = load_module(Source.read(path))
        for name in module.exported:
            definition = module.symbols[name]
            if isinstance(definition.node, ast.Pattern):
                asked = {p.target.id for p in definition.node.params if not is_tensor(p)}
                values = {name: small[name] for name in asked & set(small)}
                program = build(definition, world, values)
                for told in check_program(program, target, ADVICE):
                    label = told.labels[0]
                    line, _ = label.source.position(label.span.start)
                    found.add((path.stem, told.code, line))
    return found


@pytest.mark.parametrize("backend", [None, Backend.GLOO, Backend.NCCL])
@pytest.mark.parametrize("small", [{}, {"n": 64}])
def test_the_library_gets_the_advice_that_it_deserves(
    backend: Backend | None, small: dict[str, int]
) -> None:
    assert given(Target(backend), 4, **small) == GIVEN


def test_across_nodes_the_flat_ones_of_the_library_are_told() -> None:
    assert given(replace(GLOO, ranks_per_node=2), 4) == GIVEN | ACROSS_NODES
    assert given(Target(Backend.NCCL, ranks_per_node=2), 4) == GIVEN


def test_advice_is_given_to_those_who_ask_only() -> None:
    text = "pattern main(x: float32[n], n = 8):\n    barrier()\n    all_reduce(x)\n"
    program = build(load_module(Source(text, "t.cl")).symbols["main"], 4)
    assert check_program(program) == []
    assert not DEFAULT.wants_some("CL4")
    assert Selection(select=("CL407",)).wants_some("CL4")
    (found,) = check_program(program, selection=Selection(select=("ALL", "CL407")))
    assert (found.code, found.severity) == ("CL407", Severity.ADVICE)


def test_what_hangs_gets_no_advice_on_its_speed() -> None:
    text = (
        "pattern main(x: float32[n], n = 8):\n    barrier()\n    if rank:\n        all_reduce(x)\n"
    )
    assert codes(text.replace("if rank:", "if rank > 0:")) == []


MESH = "    mesh inter = world // 4, intra = 4\n"
NODES = f"""\
pattern main(x: float32[n], n = 1Mi):
{MESH}    all_reduce(x)
"""


def test_a_group_that_keeps_to_a_node_shows_that_nodes_were_thought_of() -> None:
    nodes = Target(ranks_per_node=4)
    assert codes(NODES, nodes, world=8) == []
    (found,) = advice(NODES.replace(MESH, ""), nodes, world=8)
    assert found.code == "CL411"
    assert found.message == (
        "all_reduce of 4 MiB over 8 ranks of 2 nodes, and no group keeps to a node"
    )
    assert found.help == (
        "see the library's `hierarchical_all_reduce`: `mesh inter = world // 4, intra = 4`"
    )


def test_small_data_may_cross_nodes_flat() -> None:
    text = "pattern main(x: float32[n], n = 1Ki):\n    all_reduce(x)\n"
    assert codes(text, Target(ranks_per_node=2)) == []
    assert codes(text.replace("1Ki", "1Mi"), Target(ranks_per_node=2)) == ["CL411"]


CUDA = Target(Backend.GLOO, device="cuda")


def test_gloo_for_device_tensors_is_told_once_and_only_if_nccl_would_do() -> None:
    text = (
        "pattern main(x: int32[n], n = 8):\n    barrier()\n    all_reduce(x)\n    all_reduce(x)\n"
    )
    (found,) = [f for f in advice(text, CUDA) if f.code == "CL410"]
    assert found.labels[0].where() == "t.cl:3:5"
    assert found.message == "gloo moves CUDA tensors by way of the host's memory"
    assert "CL410" not in codes(text, GLOO)
    assert "CL410" not in codes(text.replace("all_reduce(x)", "all_reduce(x, op=band)"), CUDA)
    assert codes("pattern main():\n    barrier()\n", CUDA) == []


def test_a_barrier_is_kept_on_nccl_where_hosts_work() -> None:
    text = (
        "pattern main(x: float32[n], n = 8):\n"
        '    compute(1ms, "write the checkpoint")\n'
        "    all_reduce(x)\n"
        "    barrier()\n"
        '    compute(1ms, "read the checkpoint")\n'
    )
    assert codes(text, Target(Backend.NCCL)) == []
    (unsure,), (sure,) = advice(text), advice(text, GLOO)
    assert unsure.fix is None
    assert sure.fix is not None


def test_a_needless_barrier_is_removed() -> None:
    text = (
        "pattern main(x: float32[n], n = 8):\n"
        "    barrier()  # all are here\n"
        "    all_reduce(x)\n"
        "    barrier()\n"
        "    broadcast(x, src=0)\n"
    )
    mended = mend(Source(text, "t.cl"), options=Options(selection=ADVICE))
    assert mended.text == text.replace("    barrier()\n", "")  # a comment is not thrown away
    assert [found.code for found in mended.findings] == ["CL407"]


def test_two_barriers_side_by_side_leave_one() -> None:
    text = "pattern main():\n    barrier()\n    barrier()\n    barrier()\n"
    mended = mend(Source(text, "t.cl"), options=Options(selection=ADVICE))
    assert mended.text == "pattern main():\n    barrier()\n"


def test_a_list_becomes_the_tensor_that_it_was_cut_from() -> None:
    text = (
        "pattern main(\n"
        "    y: float32[n],\n"
        "    x: float32[world * n],\n"
        "    z: float32[world, n],\n"
        "    n = 8,\n"
        "):\n"
        "    reduce_scatter(y, x.chunks(world), op=max)\n"
        "    work = async all_gather(z.chunks(world), y)\n"
        "    wait(work)\n"
    )
    mended = mend(Source(text, "t.cl"), options=Options(selection=ADVICE))
    assert mended.text == text.replace(
        "reduce_scatter(y, x.chunks(world), op=max)", "reduce_scatter_single(y, x, op=max)"
    ).replace("all_gather(z.chunks(world), y)", "all_gather_single(z, y)")
    assert [found.code for found in mended.findings] == ["CL406", "CL406"]


def test_all_to_all_on_all_ranks_is_no_star() -> None:
    text = (
        "pattern main(y: float32[world, n], x: float32[n], n = 8):\n"
        "    for d in ranks:\n"
        "        parallel for r in ranks:\n"
        "            if r != d:\n"
        "                x @ d -> y[d] @ r\n"
    )
    assert codes(text) == []  # every rank has its turn at the centre


def test_messages_between_which_something_is_done_stay_apart() -> None:
    text = (
        "pattern main(x: float32[6, n], y: float32[n], n = 8):\n"
        "    for i in range(6):\n"
        "        if rank == 0:\n"
        "            send(x[i], dst=1)\n"
        "        elif rank == 1:\n"
        "            recv(x[i], src=0)\n"
        "            x[i] -> y\n"
    )
    assert codes(text) == []
    assert codes(text.replace("            x[i] -> y\n", "")) == ["CL401"]
