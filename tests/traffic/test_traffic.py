"""Traffic of whole programs: what is sent is received, and links carry it."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlang.errors import UsageError
from commlang.operations import Kind
from commlang.program import Program, build
from commlang.program.steps import step_graph
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.traffic import Traffic, by_link, by_resource, traffic
from commlang.verify import default_world

if TYPE_CHECKING:
    from commlang.program.columns import Array

ROOT = Path(__file__).parents[2]


def program_of(text: str, world: int | None = None) -> Program:
    module = load_module(Source(text, "test.cl"))
    definition = module.symbols[module.exported[-1]]
    return build(definition, world or default_world(definition, {}))


def received_by_rows(program: Program) -> Array:
    """What recvs say: elements and sizes of their own."""
    found = np.zeros((program.world, program.world), dtype=np.int64)
    for row in np.flatnonzero(program.kind == Kind.RECV).tolist():
        dtype = program.site_of(row).dtype
        assert dtype is not None
        length = int(program.operands.length[program.first[row]])
        found[program.peer[row], program.rank[row]] += length * dtype.itemsize
    return found


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "patterns").glob("[!c]*/*.cl")),
    ids=lambda path: path.stem,
)
def test_messages_of_the_library_are_received_as_they_are_sent(path: Path) -> None:
    program = program_of(path.read_text(encoding="utf-8"))
    found = traffic(program)
    assert found.sent.sum() == found.received.sum() == found.total == found.matrix().sum()
    sends = np.isin(program.site[found.row], np.flatnonzero(program.site_kind == Kind.SEND))
    steps = step_graph(program).nodes.values()
    told = sum(step["bytes"] for step in steps if step.get("operation") == "send")
    assert found.bytes[sends].sum() == told
    only = Traffic(program.world, *(getattr(found, n)[sends] for n in COLUMNS))
    assert np.array_equal(only.matrix(), received_by_rows(program))
    assert not (found.src == found.dst).any()


COLUMNS = ("src", "dst", "bytes", "messages", "row")


@settings(max_examples=20)
@given(st.integers(0, 1 << 32), st.integers(2, 12))
def test_what_any_exchange_sends_is_what_it_receives(seed: int, world: int) -> None:
    random = Random(seed)
    lines = ["pattern main(x: float32[64], y: float32[64]):"]
    expected = np.zeros((world, world), dtype=np.int64)
    for _ in range(random.randint(1, 6)):
        step, size, times = (
            random.randrange(1, world),
            random.randrange(0, 64),
            random.randint(1, 3),
        )
        lines += [
            f"    for s in range({times}):",
            "        parallel:",
            f"            send(x[:{size}], dst=(rank + {step}) % world)",
            f"            recv(y[:{size}], src=(rank - {step}) % world)",
        ]
        for rank in range(world):
            expected[rank, (rank + step) % world] += 4 * size * times
    found = traffic(program_of("\n".join(lines) + "\n", world))
    assert np.array_equal(found.matrix(), expected)
    assert found.sent.tolist() == expected.sum(axis=1).tolist()
    assert found.matrix(2).sum() == found.total


def test_blocks_of_ranks_keep_all_bytes() -> None:
    text = (ROOT / "patterns/point_to_point/ring_all_reduce.cl").read_text(encoding="utf-8")
    found = traffic(program_of(text, 100))
    blocks = found.matrix(8)
    assert blocks.shape == (8, 8)
    assert blocks.sum() == found.total
    assert (np.flatnonzero(blocks[0]) == [0, 1]).all()
    assert found.matrix(1000).shape == (100, 100)


class Box:
    """Nodes of two devices on one switch; each rank has a port, each node an uplink."""

    name = "box"
    size = 4
    links = (SimpleNamespace(name="inside"), SimpleNamespace(name="between"))
    capacities = np.ones(6)

    def link_of(self, src: Array, dst: Array, /) -> Array:
        return np.where(src == dst, -1, np.where(src // 2 == dst // 2, 0, 1))

    def routes(self, src: Array, dst: Array, /) -> Any:
        paths = [
            [s] if s // 2 == d // 2 else [s, 4 + s // 2]
            for s, d in zip(src.tolist(), dst.tolist(), strict=True)
        ]
        pointer = np.cumsum([0, *map(len, paths)])
        return SimpleNamespace(pointer=pointer, resource=np.concatenate(paths))


def test_links_carry_what_ranks_send() -> None:
    found = traffic(program_of("pattern main(x: float32[8]):\n    all_reduce(x)\n", 4))
    link = by_link(found, Box())
    assert link.bytes.tolist() == [96, 96]
    assert link.messages.tolist() == [12, 12]
    assert by_resource(found, Box()).tolist() == [48, 48, 48, 48, 48, 48]


def test_a_world_larger_than_the_machine_is_refused() -> None:
    found = traffic(program_of("pattern main(x: float32[8]):\n    all_reduce(x)\n", 5))
    for function in (by_link, by_resource):
        with pytest.raises(UsageError) as error:
            function(found, Box())
        assert str(error.value) == (
            "5 ranks do not fit on box, which has 4 devices; take fewer ranks or a larger machine"
        )


def test_the_documentation_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    code, told = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.M | re.S)[0]
    exec(code, {})
    assert capsys.readouterr().out == told


def test_a_program_without_messages_has_no_traffic() -> None:
    found = traffic(program_of("pattern main(x: float32[8]):\n    fill(x, 1)\n", 3))
    assert len(found) == 0
    assert found.matrix().tolist() == [[0] * 3] * 3
    assert len(found.pairs()) == found.count == 0
