"""Plans: what they hold, how they are read back, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commlang.errors import CommlangError, PatternError, UsageError
from commlang.plan import Plan, make_plan
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source

RING = """\
pattern ring(x: float32[n], n = 8, op = sum):
    mesh outer = world // 2, inner = 2
    temp inbox: like x
    parallel:
        send(x, dst=ranks.next)
        recv(inbox, src=ranks.prev)
    inbox -> x, op=op
    all_reduce(x, group=inner)
"""


def definition(text: str, path: str = "<text>") -> Definition:
    module = load_module(Source(text, path))
    return module.symbols[module.exported[-1]]


def test_a_plan_says_what_was_checked() -> None:
    plan = make_plan(definition(RING), 4, {"n": 16, "op": "max"})
    assert (plan.version, plan.pattern, plan.world, plan.events) == (1, "ring", 4, 16)
    assert plan.parameters == {"n": 16, "op": "max"}
    assert plan.values == {"n": 16, "op": "max"}
    assert "deadlock-free under rendezvous" in plan.proofs
    groups = [(g.label, g.ranks, g.used) for g in plan.groups]
    assert groups == [
        ("world", (0, 1, 2, 3), True),
        ("ring.outer", (0, 2), False),
        ("ring.outer", (1, 3), False),
        ("ring.inner", (0, 1), True),
        ("ring.inner", (2, 3), True),
    ]


def test_a_faulty_pattern_is_not_planned() -> None:
    body = "    send(x, dst=ranks.next)\n    recv(x, src=ranks.prev)\n"
    text = f"pattern f(x: float32[n], n = 8):\n{body}"
    with pytest.raises(PatternError) as caught:
        make_plan(definition(text), 3)
    (found,) = caught.value.diagnostics
    assert (found.code, found.where()) == ("CL201", "<text>:2:5")


def test_static_faults_come_before_expansion() -> None:
    faulty = definition("pattern f(x: float32[4]):\n    send(y, dst=1)\n    sned(x, dst=1)\n")
    with pytest.raises(PatternError) as caught:
        make_plan(faulty, 2)
    assert [d.code for d in caught.value.diagnostics] == ["CL101", "CL101"]


@pytest.mark.parametrize("world", [0, -3])
def test_a_world_has_ranks(world: int) -> None:
    with pytest.raises(UsageError, match=f"a world of {world} ranks"):
        make_plan(definition(RING), world)


def test_a_plan_travels_as_json(tmp_path: Path) -> None:
    path = tmp_path / "ring.cl"
    path.write_text(RING)
    plan = make_plan(definition(RING, str(path)), 4)
    read = Plan.from_json(plan.to_json())
    assert read.model_dump() == plan.model_dump()
    assert read.fingerprint == plan.fingerprint
    rows, whole = read.program(3), plan.program()
    there = whole.rows_of(3)
    assert rows.key.tolist() == whole.key[there.start : there.stop].tolist()
    assert rows.group.tolist() == whole.group[there.start : there.stop].tolist()
    assert rows.peer.tolist() == whole.peer[there.start : there.stop].tolist()


def test_a_big_plan_is_small() -> None:
    text = (Path(__file__).parents[2] / "patterns/point_to_point/ring_all_reduce.cl").read_text()
    plan = make_plan(definition(text), 128)
    assert len(plan.to_json()) < 10_000


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ring.cl"
    path.write_text(RING)
    text = make_plan(definition(RING, str(path)), 4).to_json()
    path.write_text(RING.replace("n = 8", "n = 9"))
    with pytest.raises(CommlangError, match=r"ring\.cl or a file that it imports is not the one"):
        Plan.from_json(text).program(0)


def test_the_fingerprint_tells_plans_apart_but_not_paths(tmp_path: Path) -> None:
    here, there = tmp_path / "a.cl", tmp_path / "b.cl"
    for path in (here, there):
        path.write_text(RING)
    plans = [make_plan(definition(RING, str(p)), 4) for p in (here, there)]
    assert plans[0].fingerprint == plans[1].fingerprint
    assert make_plan(definition(RING), 6).fingerprint != plans[0].fingerprint
    assert make_plan(definition(RING), 4, {"n": 9}).fingerprint != plans[0].fingerprint
    assert make_plan(definition(RING + "# x\n"), 4).fingerprint != plans[0].fingerprint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version: Input should be 1"),
        ({"world": 0}, "world: Input should be greater than or equal to 1"),
        ({"code": "print()"}, "code: Extra inputs are not permitted"),
        ({"groups": [{"label": "g"}]}, "groups.0.ranks: Field required"),
    ],
)
def test_what_is_no_plan_is_refused(change: dict[str, object], said: str) -> None:
    fields = json.loads(make_plan(definition(RING), 4).to_json()) | change
    with pytest.raises(UsageError) as caught:
        Plan.from_json(json.dumps(fields))
    assert str(caught.value) == f"not a plan of version 1: {said}"


def test_json_noise_is_refused() -> None:
    with pytest.raises(UsageError, match="not a plan of version 1: the file: Invalid JSON"):
        Plan.from_json("{")


def test_a_rank_outside_the_world_has_no_program() -> None:
    with pytest.raises(UsageError, match="rank 4 is outside the plan's world of 4"):
        make_plan(definition(RING), 4).program(4)


def test_fractions_survive_json(tmp_path: Path) -> None:
    text = "pattern f(x: float32[4], half):\n    scale(x, half)\n"
    path = tmp_path / "f.cl"
    path.write_text(text)
    from fractions import Fraction

    plan = make_plan(definition(text, str(path)), 2, {"half": Fraction(1, 2)})
    again = Plan.from_json(plan.to_json()).program(1)
    assert again.arguments_of(0) == {"factor": Fraction(1, 2)}
