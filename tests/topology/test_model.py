"""Machine descriptions: shipped ones, what must fit together, parts for a world, collectives."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from commlang.errors import UsageError
from commlang.topology import Collective, load_machine, machine_names

from .machines import machine


def test_machines_of_each_kind_are_shipped() -> None:
    machines = {name: load_machine(name) for name in machine_names()}
    assert {name: m.size for name, m in machines.items()} == {
        "dgx-h100": 8,
        "dgx-h100-rails": 32768,
        "ethernet-cluster": 4096,
        "infiniband-fat-tree": 16384,
        "pcie-box": 8,
        "tpu-v5p": 6144,
    }
    for name, of in machines.items():
        assert of.name == name
        assert of.about
        assert all(part.source for part in (*of.links, *of.levels, of.compute)), name
        assert of.compute.flops["bfloat16"] > 1e14
        assert of.compute.memory_bandwidth is not None


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (
            [{"kind": "ring", "size": [2, 2]}],
            "kind ring: only a torus has several dimensions",
        ),
        ([{"kind": "switch", "size": 4, "leaf": 2}], "only trees and rails have a leaf"),
        ([{"kind": "fat_tree", "size": 4, "oversubscription": 2}], "oversubscription is of a leaf"),
        ([{"kind": "switch", "size": 4, "wrap": False}], "only rings and tori wrap"),
        ([{"kind": "ring", "size": 4, "carries": True}], "only switch, fat_tree, bus carry"),
        ([{"kind": "full", "size": 5000}], "full is of at most 4096"),
        ([{"kind": "switch", "size": 4, "link": "x"}], "`l0`: no link `x` among near, far"),
        ([{"kind": "switch", "size": 4, "ports": 2}], "2 ports for 1 device"),
        ([{"kind": "switch", "size": 0}], "greater than or equal to 1"),
        ([{"kind": "switch", "size": 1 << 20}] * 2, "1099511627776 devices are more than 16777216"),
        ([{"kind": "switch", "size": 2.5}], "valid integer"),
        ([{"kind": "star", "size": 2}], "'switch', 'rails'"),
        ([], "at least 1 item"),
    ],
)
def test_what_does_not_fit_together_is_refused(levels: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        machine(*levels)


def test_the_outermost_level_is_cut_to_the_world() -> None:
    of = load_machine("dgx-h100-rails")
    assert of.for_world(10_000).size == 10_000
    assert of.for_world(10_001).size == 10_008
    assert of.for_world(3).levels[-1].size == (1,)
    assert of.for_world(of.size) is of
    with pytest.raises(UsageError) as refused:
        of.for_world(40_000)
    assert str(refused.value) == (
        "dgx-h100-rails has 32768 devices, fewer than 40000 ranks; take another machine, or raise "
        "the size of its outermost level"
    )
    with pytest.raises(UsageError, match="a world has 1 rank or more, not 0"):
        of.for_world(0)


@pytest.mark.parametrize(
    ("world", "size"),
    [
        (1, (1, 1, 1)), (2, (2, 1, 1)), (8, (2, 2, 2)), (60, (4, 4, 4)), (64, (4, 4, 4)),
        (128, (8, 4, 4)), (4096, (16, 16, 16)), (4097, (16, 16, 24)),
    ],
)  # fmt: skip
def test_a_torus_is_cut_as_cubic_as_it_goes(world: int, size: tuple[int, ...]) -> None:
    assert load_machine("tpu-v5p").for_world(world).levels[-1].size == size


def test_a_measured_collective_is_a_line_or_points_joined_by_lines() -> None:
    line = Collective(name="all_reduce", world=4, alpha=1e-5, beta=1e-9)
    assert line.seconds(1000) == pytest.approx(1.1e-5)
    points = Collective(name="all_reduce", world=4, points=((100, 1.0), (200, 2.0), (400, 6.0)))
    assert [points.seconds(size) for size in (10, 100, 150, 200, 300, 400, 500)] == [
        1.0, 1.0, 1.5, 2.0, 4.0, 6.0, 8.0,
    ]  # fmt: skip
    one = Collective(name="barrier", world=4, points=((100, 1.0),))
    assert [one.seconds(size) for size in (0, 100, 400)] == [1.0, 1.0, 4.0]
    nothing = Collective(name="barrier", world=4, points=((0, 1.0),))
    assert [nothing.seconds(size) for size in (0, 100)] == [1.0, 1.0]
    noisy = Collective(name="all_reduce", world=4, points=((100, 3.0), (200, 2.0)))
    assert [noisy.seconds(size) for size in (150, 200, 10**6)] == [2.5, 2.0, 2.0]
    of = machine({"kind": "switch", "size": 4}, collectives=[line.model_dump()])
    assert of.collective("all_reduce", 4) == line
    assert of.collective("all_reduce", 2) is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "give either `points`, or `alpha` and `beta`"),
        ({"alpha": 1}, "give either `points`, or `alpha` and `beta`"),
        ({"alpha": 1, "beta": 1, "points": [(1, 1)]}, "give either `points`"),
        ({"alpha": 1, "points": [(1, 1)]}, "give either `points`"),
        ({"points": [(2, 1), (1, 1)]}, "must be sorted by bytes"),
        ({"points": [(1, 1), (1, 2)]}, "must be sorted by bytes"),
        ({"name": "all_reduc", "points": [(1, 1)]}, "`all_reduc` is no collective; did you mean"),
    ],
)
def test_a_collective_has_one_form(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Collective.model_validate({"name": "all_reduce", "world": 2, **fields})
