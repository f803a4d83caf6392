"""Lockstep programs are decided without a graph: the graphs must agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from commlang.checks.facts import gather_facts
from commlang.errors import PatternError
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import NcclInit, mpi, rendezvous
from commlang.transports.issue import issue
from commlang.transports.nccl import Nccl
from tests.transports.test_nccl import program_of

if TYPE_CHECKING:
    from random import Random

    from commlang.checks.facts import Facts

PATTERNS = sorted((Path(__file__).parents[2] / "patterns").glob("**/*.cl"))


def _hangs(facts: Facts) -> list[str]:
    """The models under which the graph of a program has a cycle."""
    graphs = {"rendezvous": rendezvous.graph(facts.events)}
    issued = issue(facts.events)
    for init in NcclInit:
        nccl = Nccl(facts.events, issued, init)
        graphs[f"{init} issue order"] = nccl.issue_order()
        graphs[f"{init} one queue"] = nccl.one_queue()
        graphs[f"{init} whole batches"] = nccl.whole_batches()
    graphs["mpi"] = mpi.graph(facts.events, facts.program.ranks)
    return [name for name, graph in graphs.items() if graph.hangs()]


def test_what_is_in_lockstep_hangs_under_no_model() -> None:
    aligned = 0
    for path in PATTERNS:
        module = load_module(Source.read(path))
        for name in module.exported:
            try:
                facts = gather_facts(build(module.symbols[name], 4))
            except PatternError:
                continue
            if facts.aligned:
                aligned += 1
                assert _hangs(facts) == [], path
    assert aligned > 30


STATEMENTS = (
    "all_reduce(x)",
    "all_reduce(y, group=g)",
    "broadcast(x, src=1)",
    "x @ 0 -> y @ 1",
    "h{0} = async all_reduce(x)\n    wait(h{0})",
    "h{0} = async x @ 1 -> y @ 2",
    "parallel:\n        send(x, dst=ranks.next)\n        recv(y, src=ranks.prev)",
    "parallel for r in ranks:\n        x @ r -> y @ (r + 1) % world",
    "parallel:\n        send(x, dst=ranks.next, group=g)\n"
    "        recv(y, src=ranks.prev, group=g)\n        all_reduce(z)",
    "if rank == 0:\n        send(x, dst=1)\n    if rank == 1:\n        recv(y, src=0)",
    "if rank == 1:\n        recv(y, src=0)\n    if rank == 0:\n        send(x, dst=1)",
    "if rank == 0:\n        all_reduce(x)\n    else:\n        all_reduce(x)",
    "if rank == 0:\n        all_reduce(x)\n        all_reduce(y, group=g)\n    else:\n"
    "        all_reduce(x)\n        all_reduce(y, group=g)",
)


@given(st.randoms(use_true_random=False))
def test_random_lockstep_programs_hang_under_no_model(random: Random) -> None:
    lines = [random.choice(STATEMENTS) for _ in range(random.randint(1, 6))]
    body = "".join(f"    {line.format(i)}\n" for i, line in enumerate(lines))
    waits = "".join(
        f"    wait(h{i})\n"
        for i, line in enumerate(lines)
        if line.startswith("h") and "wait" not in line
    )
    text = (
        "pattern main(x: float32[n], y: float32[n], z: float32[n], n = 4):\n"
        f"    group g = ranks\n{body}{waits}"
    )
    facts = gather_facts(program_of(text, 3))
    event(f"aligned {facts.aligned}")
    if facts.aligned:
        assert _hangs(facts) == []


@pytest.mark.parametrize(
    "text",
    [
        "send(x, dst=ranks.next)\n    recv(y, src=ranks.prev)",
        "if rank == 0:\n        all_reduce(x)\n        all_reduce(y, group=g)\n"
        "    else:\n        all_reduce(y, group=g)\n        all_reduce(x)",
    ],
)
def test_what_hangs_is_not_in_lockstep(text: str) -> None:
    head = "pattern main(x: float32[n], y: float32[n], n = 4):\n    group g = ranks\n    "
    assert not gather_facts(program_of(f"{head}{text}\n", 3)).aligned
