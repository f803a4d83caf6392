"""The views of a graph, a matrix and a machine: word for word, by their numbers, their size.

To write the golden files anew, in tests/draw/golden/views: `commlang draw exchange.cl --view VIEW
-o exchange.VIEW.ENDING`, for topologies with `--topology pcie-box`; and look at the pictures.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest

from commlang.draw import Subject, draw
from commlang.draw.graph import MOST, make_graph
from commlang.draw.graph_layout import WIDTH, lay_out
from commlang.draw.heat import Scale
from commlang.draw.matrix import make_matrix
from commlang.draw.topology import make_load, peer_wires
from commlang.draw.topology_blocks import make_block, worst_device
from commlang.errors import UsageError
from commlang.program.timing import Timing
from commlang.topology import Machine, load_machine, machine_names
from commlang.traffic import by_resource, traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program

    from .conftest import Result

    Make = Callable[..., Program]

GOLDEN = Path(__file__).parent / "golden" / "views"
FORMATS = {".svg": "svg", ".txt": "text", ".mmd": "mermaid", ".dot": "dot"}
CASES = sorted(path for path in GOLDEN.iterdir() if path.suffix in FORMATS)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("expected", CASES, ids=lambda path: path.name)
def test_draw_prints(
    expected: Path, drawn: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(GOLDEN)
    view = expected.stem.split(".")[1]
    machine = ["--topology", "pcie-box"] if view == "topology" else []
    form = FORMATS[expected.suffix]
    result = drawn("exchange.cl", "--view", view, "--format", form, *machine)
    assert result.out == expected.read_text(encoding="utf-8")
    assert result.code == 0


def test_each_view_has_a_golden_file_in_each_format() -> None:
    names = {path.name.removeprefix("exchange.") for path in CASES}
    assert names == {
        *("graph.svg", "graph.txt", "graph.mmd", "graph.dot"),
        *("matrix.svg", "matrix.txt", "topology.svg", "topology.txt"),
    }


@pytest.mark.parametrize("view", ["graph", "matrix", "topology"])
def test_pages_hold_the_picture(view: str, program: Make) -> None:
    subject = Subject(program("ring_all_reduce", 4), machine=load_machine("dgx-h100"))
    svg, page = draw(subject, view, "svg"), draw(subject, view, "html")
    assert svg in page
    assert page.startswith("<!DOCTYPE html>")


def well_formed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def tips(picture: str) -> list[str]:
    return [node.text or "" for node in well_formed(picture).iter(f"{SVG}title")]


MANY = [
    ("ring_all_reduce", 1024),
    ("moe", 1024),
    ("fsdp_step", 64),
    ("hierarchical_all_reduce", 1024),
    ("training_step_3d", 64),
    ("interleaved_1f1b", 4),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "world"), MANY)
def test_pictures_of_many_ranks_stay_small(name: str, world: int, program: Make) -> None:
    subject = Subject(program(name, world), machine=load_machine("infiniband-fat-tree"))
    for view in ("graph", "matrix", "topology"):
        assert len(draw(subject, view, "svg")) < 400_000
        assert max(map(len, draw(subject, view, "text").splitlines())) < 240
    assert len(draw(subject, "topology", "text").splitlines()) < 12


EVERYBODY = """\
pattern main(x: float32[n], y: float32[n], n = 1024):
    all_to_all_single(y, x)
"""


def test_a_matrix_of_many_ranks_is_one_of_blocks(program: Make) -> None:
    subject = Subject(program(EVERYBODY, 128, n=128))
    matrix = make_matrix(subject)
    assert matrix.size == 32
    assert [matrix.name(0), matrix.name(31)] == ["0–3", "124–127"]
    assert (matrix.bytes.diagonal() == 4 * 4 * 3).all()
    assert matrix.bytes[0, 1] == 4 * 4 * 4
    assert matrix.messages.sum() == 128 * 127
    picture = draw(subject, "matrix")
    assert len(picture) < 250_000
    assert "0–3 → 4–7: 64 B in 16 messages; 64 B by main.cl:2:5" in tips(picture)
    assert "Bytes from each block of 4 ranks (row) to each (column): 63.5 KiB" in picture


def test_a_matrix_says_by_which_statements(program: Make) -> None:
    text = """\
pattern main(x: float32[8]):
    all_reduce(x)
    broadcast(x, src=0)
"""
    said = tips(draw(Subject(program(text, 2)), "matrix"))
    assert "0 → 1: 64 B in 3 messages; 32 B by main.cl:2:5, 32 B by main.cl:3:5" in said
    assert "1 → 0: 32 B in 2 messages; 32 B by main.cl:2:5" in said


def test_a_scale_is_logarithmic_where_values_lie_far_apart() -> None:
    near, far = Scale.of([0, 10, 40]), Scale.of([1, 1 << 20])
    assert [near.shade(0), near.shade(10), near.shade(40)] == [0.0, 0.25, 1.0]
    assert not near.logarithmic
    assert [far.shade(1), far.shade(1 << 10), far.shade(1 << 20)] == [0.2, 0.6, 1.0]
    assert far.marks(3) == [1.0, 1024.0, 1048576.0]
    assert Scale.of([]).shade(1) == 1.0
    assert Scale.of([7, 7]).marks() == [7.0]


def test_few_steps_are_drawn_one_by_one_and_many_as_statements(program: Make) -> None:
    few = make_graph(Subject(program("ring_all_reduce", 4)))
    assert len([node for node in few.nodes.values() if not node.join]) == 15
    many = make_graph(Subject(program("ring_all_reduce", 64)))
    nodes = [node for node in many.nodes.values() if not node.join]
    assert [node.times for node in nodes] == [63] * 5
    assert [node.ranks for node in nodes] == [64] * 5
    assert sum(edge.counts.get("message", 0) for edge in many.edges) == 2 * 63 * 64
    assert many.notes == [
        # 126 chunks of 64 KiB are sent, and 63 times two of them are added up.
        "Critical path, by bytes of a rank: 15.8 MiB in 315 steps of 315.",
        "315 steps are drawn as the statements that they repeat.",
    ]


def test_a_graph_of_very_many_statements_keeps_the_heaviest(program: Make) -> None:
    lines = [f"    fill(x[:{n + 1}], {n})" for n in range(MOST + 30)]
    text = "pattern main(x: float32[512]):\n" + "\n".join(lines) + "\n"
    graph = make_graph(Subject(program(text, 2)))
    assert len(graph.nodes) == MOST
    assert min(node.bytes for node in graph.nodes.values()) == 2 * 4 * 31
    assert graph.notes[-1] == "30 statements more, those of fewest bytes, are not drawn."


def test_statements_that_are_met_by_many_calls_are_one(program: Make) -> None:
    calls = "    part(x)\n" * (MOST + 1)
    text = f"pattern main(x: float32[8]):\n{calls}\npattern part(x: float32[8]):\n    fill(x, 1)\n"
    (node,) = make_graph(Subject(program(text, 2))).nodes.values()
    assert (node.text, node.told()) == ("fill(x, 1)", f"×{MOST + 1} · 2 ranks · 7.56 KiB")


TWO_WAYS = """\
pattern main(x: float32[8], y: float32[64]):
    parallel:
        fill(x, 1)
        fill(y, 1)
    compute(1ms, reads=[x])
"""


def test_the_critical_path_goes_by_bytes_and_by_time(program: Make) -> None:
    found = program(TWO_WAYS, 1)
    by_bytes = make_graph(Subject(found))
    assert [n.text for n in by_bytes.nodes.values() if n.critical and not n.join] == [
        "fill(y, 1)",
        "compute(1ms, reads=[x])",
    ]
    timing = Timing(np.array([0.0, 0.0, 2.0]), np.array([2.0, 1.0, 2.5]), "measured")
    by_time = make_graph(Subject(found, (timing,)))
    assert [n.text for n in by_time.nodes.values() if n.critical and not n.join] == [
        "fill(x, 1)",
        "compute(1ms, reads=[x])",
    ]
    assert by_time.path.told.endswith("measured: 2.5 s with waits and overlaps in 2 steps of 3.")
    plan = Timing(np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 2.0]), "program order")
    assert make_graph(Subject(found, (plan, timing))).path.told == by_time.path.told
    told = make_graph(Subject(found, (timing,), critical=np.array([1, 2])))
    assert sorted(told.path.edges) == [(int(found.key[1]), int(found.key[2]))]
    assert told.path.told == "Critical path, measured: 2.5 s in 2 steps of 3."


@pytest.mark.parametrize("name", ["ring_all_reduce", "halo_exchange", "interleaved_1f1b"])
def test_boxes_of_a_graph_do_not_overlap(name: str, program: Make) -> None:
    layout = lay_out(make_graph(Subject(program(name, 4))))
    layers: dict[int, list[float]] = {}
    for node, (x, _) in layout.at.items():
        if node >= 0:
            layers.setdefault(layout.layer[node], []).append(x)
    gaps = [
        b - a for row in layers.values() for a, b in zip(sorted(row), sorted(row)[1:], strict=False)
    ]
    assert gaps
    assert min(gaps) >= WIDTH
    assert max(x for x, _ in layout.at.values()) <= layout.width


LABEL = 'pattern main(x: float32[4]):\n    compute(1ms, label="{}")\n    fill(x, 1)\n'


@pytest.mark.parametrize("label", ["`md`", "a;b", "]--x", "end", "é→", "\\N", "&quot;", "x" * 500])
def test_labels_stay_labels_in_every_format(label: str, program: Make) -> None:
    subject = Subject(program(LABEL.format(label), 2))
    assert well_formed(draw(subject, "graph")).tag == f"{SVG}svg"
    mermaid = draw(subject, "graph", "mermaid").splitlines()
    (line,) = (line for line in mermaid if "compute" in line)
    assert re.fullmatch(r'    n1\["[\w .,:=()+*/@→←×·|…#;-]*<br/>2 ranks"\]', line)
    dot = draw(subject, "graph", "dot")
    (line,) = (line for line in dot.splitlines() if "n1 [" in line)
    quoted = re.match(r'    n1 \[label="((?:[^"\\]|\\.)*)", tooltip="main\.cl:2:5"', line)
    assert quoted
    text = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], quoted[1])
    assert text.startswith(f'compute(1ms, label="{label}")'[:59])


def test_text_does_not_turn_what_stands_around_it(program: Make) -> None:
    found = Subject(program('pattern main():\n    compute(1ms, label="a\u202eb\u2066c")\n', 1))
    for form in ("text", "dot", "mermaid"):
        picture = draw(found, "graph", form)
        assert not set(picture) & set("\u202e\u2066")
        assert "a b c" in picture


def test_the_load_of_a_machine_is_the_traffic_on_its_routes(program: Make) -> None:
    found = program("hierarchical_all_reduce", 16)
    for name in machine_names():
        machine = load_machine(name)
        if machine.size < 16:
            continue
        load = make_load(Subject(found, machine=machine))
        assert load.bytes.tolist() == by_resource(traffic(found), load.machine).tolist()
        block = make_block(load, len(load.tiers) - 1, 0)
        assert 0 < block.shown <= 16
        device = worst_device(load)
        assert device is not None
        ends = {
            load.machine.resources[load.worst].source,
            load.machine.resources[load.worst].target,
        }
        near = {f"device {device}"} | {
            f"{tier.level.name} {device // (tier.inside * tier.count)}" for tier in load.tiers
        }
        assert ends & near
        picture = draw(Subject(found, machine=machine), "topology")
        assert any(tip.endswith(", the busiest link") for tip in tips(picture))


def test_a_large_machine_shows_some_groups_of_each_kind(program: Make) -> None:
    text = """\
pattern main(x: float32[8]):
    if rank == 100:
        send(x, dst=101)
    if rank == 101:
        recv(x, src=100)
"""
    subject = Subject(program(text, 128), machine=load_machine("dgx-h100-rails"))
    load = make_load(subject)
    block = make_block(load, 1, 0)
    assert block.places == [0, 1, 12, 15], "the third has the busiest link"
    assert block.hidden == [0, 10, 2, 0]
    assert worst_device(load) == 100
    picture = draw(subject, "topology")
    assert "32 of 128 devices are shown." in picture
    assert "Busiest: device 100 → node 12, 32 B in" in picture
    wires = [tip for tip in tips(picture) if tip.startswith("device 101 →")]
    assert wires[0].startswith("device 101 → node 12: 0 B, back: 32 B · nvlink, busy for")


def level(name: str, kind: str, link: str, size: object, **more: object) -> dict[str, object]:
    return {"name": name, "kind": kind, "link": link, "size": size, **more}


ODD: list[list[dict[str, object]]] = [
    [level("r", "ring", "a", 4), level("s", "switch", "b", 4)],
    [level("s", "switch", "a", 4), level("r", "ring", "b", 4)],
    [level("d", "switch", "a", 2), level("bus", "bus", "b", 4, ports=2, carries=True)],
    [level("d", "switch", "a", 4), level("f", "full", "b", 4, ports=2)],
    [level("t", "torus", "a", [3, 2, 2, 2])],
    [level("t", "ring", "a", 16, wrap=False)],
    [level("t", "ring", "a", 2), level("u", "torus", "b", [2, 2])],
    [level("n", "switch", "a", 2), level("x", "fat_tree", "b", 4, leaf=2, oversubscription=2)],
]


@pytest.mark.parametrize("levels", ODD, ids=lambda levels: "-".join(str(v["kind"]) for v in levels))
def test_all_kinds_of_levels_are_drawn(levels: list[dict[str, object]], program: Make) -> None:
    links = [{"name": name, "latency": "1us", "bandwidth": "1GB/s"} for name in "ab"]
    machine = Machine.model_validate({"name": "odd", "links": links, "levels": levels})
    world = min(machine.size, 16)
    subject = Subject(program(EVERYBODY, world, n=world), machine=machine)
    load = make_load(subject)
    for number, tier in enumerate(load.tiers):
        if tier.level.kind in ("full", "ring", "torus"):
            groups = range(tier.groups)
            wires = [
                w
                for g in groups
                for w in peer_wires(load, number, g, [*range(tier.count)]).values()
            ]
            through = load.bytes[tier.first : tier.first + tier.channels].sum()
            assert sum(wire.there + wire.back for wire in wires) == through
    picture = draw(subject, "topology")
    names = {"".join(node.itertext()) for node in well_formed(picture).iter(f"{SVG}text")}
    assert {f"rank {r}" for r in range(world)} <= names or {str(r) for r in range(world)} <= names
    rows = draw(subject, "topology", "text").splitlines()
    assert sum(int(row[3]) for row in table(rows)) == np.count_nonzero(load.bytes)


def table(rows: list[str]) -> list[list[str]]:
    """The cells of the lines between the head and the next empty line."""
    body = rows[rows.index("") + 2 :]
    return [re.split(r"  +", row) for row in body[: body.index("")]]


def test_nothing_to_send_leaves_all_links_idle(program: Make) -> None:
    subject = Subject(
        program("pattern main(x: float32[8]):\n    fill(x, 1)\n", 4),
        machine=load_machine("pcie-box"),
    )
    assert "No link is used." in draw(subject, "topology")
    assert "No link is used." in draw(subject, "topology", "text")
    assert "0 B in 0 messages" in draw(subject, "matrix", "text")


def refused(function: Callable[[], Any]) -> str:
    with pytest.raises(UsageError) as error:
        function()
    return str(error.value)


def test_what_cannot_be_drawn_is_refused(program: Make) -> None:
    found = program("ring_all_reduce", 4)
    assert refused(lambda: draw(Subject(found), "topology")) == (
        "the topology view needs a machine: give --topology, one of dgx-h100, dgx-h100-rails, "
        "ethernet-cluster, infiniband-fat-tree, pcie-box, tpu-v5p, or a file"
    )
    assert refused(lambda: draw(Subject(found), "matrix", "dot")) == (
        "a matrix cannot be drawn as dot; it can as svg, html, text"
    )
    large = Subject(program("ring_all_reduce", 9), machine=load_machine("dgx-h100"))
    assert "dgx-h100 has 8 devices, fewer than 9 ranks" in refused(lambda: draw(large, "topology"))


WRONG = """\
pattern main(x: float32[8], y: float32[4]):
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        recv(y, src=0)
        recv(y, src=2)
    if rank < 2:
        all_reduce(x)
    else:
        work = async broadcast(y, src=2)
"""


def test_wrong_programs_are_drawn_too(program: Make) -> None:
    subject = Subject(program(WRONG, 3), machine=load_machine("pcie-box"))
    for view in ("graph", "matrix", "topology"):
        assert well_formed(draw(subject, view)).tag == f"{SVG}svg"
        assert draw(subject, view, "text").startswith("main on 3 ranks\n")
