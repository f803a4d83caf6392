"""Routes and latencies, by hand for each kind of level, and against a walk for grids."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlang.errors import CommlangError, UsageError
from commlang.topology import Machine, load_machine, machine_names

from .machines import machine, named_route


def pairs(of: Machine) -> tuple[Any, Any]:
    """Every device to every device."""
    src, dst = np.divmod(np.arange(of.size**2), of.size)
    return src, dst


def latency(of: Machine, src: int, dst: int) -> float:
    return round(float(of.latency_of(np.array(src), np.array(dst))) * 1e6, 6)


def test_a_switch_is_passed_by_the_ports_of_both_devices() -> None:
    one = machine({"kind": "switch", "size": 3})
    assert named_route(one, 0, 2) == ["device 0 → l0 0", "l0 0 → device 2"]
    assert named_route(one, 1, 1) == []
    assert [r.bandwidth for r in one.resources] == [100e9] * 6
    assert latency(one, 0, 2) == 1
    assert latency(one, 1, 1) == 0


def test_messages_between_groups_take_the_network_card_and_not_nvlink() -> None:
    two = machine({"kind": "switch", "size": 4}, {"kind": "switch", "size": 2})
    assert named_route(two, 1, 6) == ["l0 0 → l1 0", "l1 0 → l0 1"]
    assert two.link_of(np.array([1, 1, 1]), np.array([6, 2, 1])).tolist() == [1, 0, -1]


def test_a_level_that_carries_is_passed_on_the_way_out_and_in() -> None:
    box = machine({"kind": "switch", "size": 4, "carries": True}, {"kind": "full", "size": 2})
    assert named_route(box, 1, 6) == ["device 1 → l0 0", "l0 0 → l0 1", "l0 1 → device 6"]
    assert named_route(box, 1, 2) == ["device 1 → l0 0", "l0 0 → device 2"]
    bus = machine({"kind": "bus", "size": 2, "carries": True}, {"kind": "switch", "size": 2})
    assert named_route(bus, 0, 1) == ["l0 0 bus"]
    assert named_route(bus, 0, 3) == ["l0 0 bus", "l0 0 → l1 0", "l1 0 → l0 1", "l0 1 bus"]


def test_devices_share_the_ports_of_their_group_evenly_and_in_order() -> None:
    shared = machine({"kind": "switch", "size": 4}, {"kind": "switch", "size": 2, "ports": 2})
    assert named_route(shared, 1, 6) == ["l0 0 → l1 0, port 0", "l1 0 → l0 1, port 1"]


def test_a_leaf_switch_has_less_way_up_than_its_ports_together() -> None:
    tree = machine(
        {"kind": "switch", "size": 2},
        {"kind": "fat_tree", "size": 5, "leaf": 2, "ports": 2, "oversubscription": 4, "hop": "1us"},
    )
    assert named_route(tree, 0, 3) == [
        "l0 0 → l1 0 leaf 0, port 0",
        "l1 0 leaf 0 → l0 1, port 1",
    ]
    assert named_route(tree, 0, 9) == [
        "l0 0 → l1 0 leaf 0, port 0",
        "l1 0 leaf 0 → l1 0",
        "l1 0 → l1 0 leaf 2",
        "l1 0 leaf 2 → l0 4, port 1",
    ]
    widths = {r.name: r.bandwidth for r in tree.resources}
    assert widths["l1 0 leaf 0 → l1 0"] == 2 * 2 * 10e9 / 4
    assert widths["l1 0 → l1 0 leaf 2"] == 2 * 2 * 10e9 / 4  # half empty, cabled as the others
    assert widths["l0 0 → l1 0 leaf 0, port 0"] == 10e9
    assert latency(tree, 0, 3) == 5
    assert latency(tree, 0, 9) == 5 + 2


def test_a_rail_is_reached_inside_the_group_of_the_sender() -> None:
    rails = machine({"kind": "switch", "size": 2}, {"kind": "rails", "size": 3, "ports": 2})
    assert named_route(rails, 0, 4) == ["l0 0 → l1 0 rail 0, port 0", "l1 0 rail 0 → l0 2, port 0"]
    assert named_route(rails, 0, 5) == [
        "device 0 → l0 0",
        "l0 0 → device 1",
        "l0 0 → l1 0 rail 1, port 1",
        "l1 0 rail 1 → l0 2, port 1",
    ]
    assert latency(rails, 0, 4) == 5
    assert latency(rails, 0, 5) == 6


def test_each_rail_has_its_own_leaf_switches() -> None:
    rails = machine(
        {"kind": "switch", "size": 2}, {"kind": "rails", "size": 4, "ports": 2, "leaf": 2}
    )
    assert named_route(rails, 1, 7)[1:3] == [
        "l1 0 leaf 0 rail 1 → l1 0",
        "l1 0 → l1 0 leaf 1 rail 1",
    ]
    widths = {r.name: r.bandwidth for r in rails.resources}
    assert widths["l1 0 leaf 0 rail 1 → l1 0"] == 2 * 10e9


def test_a_mesh_has_a_channel_for_each_pair() -> None:
    mesh = machine({"kind": "full", "size": 4}, {"kind": "full", "size": 2, "ports": 4})
    assert named_route(mesh, 3, 1) == ["device 3 → device 1"]
    assert named_route(mesh, 1, 5) == ["l0 0 → l0 1, port 1"]
    src, dst = pairs(mesh)
    alone = [tuple(named_route(mesh, a, b)) for a in range(4) for b in range(4) if a != b]
    assert len(set(alone)) == 12
    assert mesh.routes(src, dst).resource.max() == len(mesh.resources) - 1


def test_a_ring_is_gone_round_the_shorter_way_and_up_if_both_are_as_long() -> None:
    ring = machine({"kind": "ring", "size": 6})
    assert named_route(ring, 5, 1) == ["device 5 → device 0", "device 0 → device 1"]
    assert named_route(ring, 1, 5) == ["device 1 → device 0", "device 0 → device 5"]
    assert named_route(ring, 0, 3)[0] == "device 0 → device 1"
    assert latency(ring, 0, 3) == 3
    line = machine({"kind": "ring", "size": 6, "wrap": False, "hop": "0.5us"})
    assert len(named_route(line, 5, 1)) == 4
    assert latency(line, 5, 1) == 1 + 3 * 0.5


@pytest.mark.parametrize(
    ("size", "wrap"), [([4, 3, 2], True), ([4, 3, 2], False), ([5], True), ([2, 1, 2], True)]
)
def test_a_torus_is_crossed_one_dimension_after_the_other(size: list[int], wrap: bool) -> None:
    torus = machine({"kind": "torus", "size": size, "wrap": wrap})
    src, dst = pairs(torus)
    routes = torus.routes(src, dst)
    for at, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        passed = routes.resource[routes.pointer[at] : routes.pointer[at + 1]]
        nodes = [f"device {device}" for device in walk(size, wrap, a, b)]
        steps = [(torus.resources[n].source, torus.resources[n].target) for n in passed]
        assert steps == list(itertools.pairwise(nodes))
    hops = np.diff(routes.pointer)
    np.testing.assert_allclose(torus.latency_of(src, dst), hops * 1e-6)


def walk(size: list[int], wrap: bool, src: int, dst: int) -> list[int]:
    """The devices on the way, one step at a time."""
    strides = [int(np.prod(size[:n])) for n in range(len(size))]
    way = [src]
    for side, stride in zip(size, strides, strict=True):
        while (at := way[-1] // stride % side) != (end := dst // stride % side):
            up = 2 * ((end - at) % side) <= side if wrap else end > at
            step = 1 if up else -1
            way.append(way[-1] + ((at + step) % side - at) * stride)
    return way


@pytest.mark.parametrize("name", machine_names())
def test_channels_of_shipped_machines_are_passed_end_to_end(name: str) -> None:
    part = load_machine(name).for_world(min(128, load_machine(name).size))
    src, dst = pairs(part)
    routes = part.routes(src, dst)
    assert routes.pointer[-1] == len(routes.resource)
    assert ((np.diff(routes.pointer) == 0) == (src == dst)).all()
    assert ((part.latency_of(src, dst) > 0) == (src != dst)).all()
    assert ((part.link_of(src, dst) == -1) == (src == dst)).all()
    resources = part.resources
    assert part.capacities.tolist() == [r.bandwidth for r in resources]
    first, last = routes.pointer[:-1][src != dst], routes.pointer[1:][src != dst] - 1
    for at, device in zip(routes.resource[first], src[src != dst], strict=True):
        assert resources[at].source in around(part, int(device))
    for at, device in zip(routes.resource[last], dst[src != dst], strict=True):
        assert resources[at].target in around(part, int(device))


def around(of: Machine, device: int) -> list[str]:
    """The device and the groups that it is in, as nodes."""
    names, inside = [f"device {device}"], 1
    for level in of.levels[:-1]:
        inside *= level.count
        names.append(f"{level.name} {device // inside}")
    return names


LEVELS = st.sampled_from([
    {"kind": "switch", "size": 3},
    {"kind": "switch", "size": 2, "carries": True},
    {"kind": "fat_tree", "size": 4, "leaf": 3},
    {"kind": "full", "size": 3},
    {"kind": "ring", "size": 4},
    {"kind": "torus", "size": [2, 3]},
    {"kind": "bus", "size": 2, "carries": True},
])  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(LEVELS, min_size=1, max_size=3), st.booleans(), st.integers(0, 1 << 30))
def test_any_levels_route_any_pairs_alone_as_together(
    levels: list[dict[str, Any]], rails: bool, seed: int
) -> None:
    inside = int(np.prod([np.prod(level["size"]) for level in levels[:-1]]))
    top = {**levels[-1], "ports": inside} if rails else levels[-1]
    some = machine(*levels[:-1], top)
    src, dst = np.random.default_rng(seed).integers(0, some.size, (2, 20))
    together = some.routes(src, dst)
    assert len({resource.name for resource in some.resources}) == len(some.capacities)
    assert together.resource.max(initial=0) < len(some.resources)
    for at in range(20):
        alone = some.routes(src[at : at + 1], dst[at : at + 1]).resource
        passed = together.resource[together.pointer[at] : together.pointer[at + 1]]
        assert passed.tolist() == alone.tolist()
        if src[at] != dst[at]:
            assert (some.capacities[passed] > 0).all()
            assert len(passed) > 0


def test_devices_that_there_are_not_are_refused() -> None:
    ring = machine({"kind": "ring", "size": 4})
    for wrong in (4, -1):
        with pytest.raises(UsageError, match=rf"^test has devices 0 to 3, and no {wrong}$"):
            ring.routes(np.array([0]), np.array([wrong]))
    assert ring.routes(np.array([], int), np.array([], int)).pointer.tolist() == [0]


def test_routes_that_fill_the_memory_are_refused_before_they_do() -> None:
    ring = machine({"kind": "ring", "size": 1 << 20})
    src = np.zeros(1000, int)
    with pytest.raises(CommlangError, match=r"^1000 messages pass 524288000 channels, more than"):
        ring.routes(src, src + (1 << 19))
    with pytest.raises(CommlangError, match="has 33554432 channels, too many to name"):
        _ = machine({"kind": "ring", "size": 1 << 24}).resources
