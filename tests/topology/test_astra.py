"""Networks of ASTRA-sim as machines: what its analytical back end computes is what we do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commlang.errors import UsageError
from commlang.source import Source
from commlang.topology.load import read_machine

if TYPE_CHECKING:
    from commlang.topology import Machine

THREE = """\
topology: [ Ring, FullyConnected, Switch ]
npus_count: [ 4, 2, 3 ]
bandwidth: [ 200.0, 100.0, 50 ]  # GB/s
latency: [ 50.0, 500.0, 2000 ]  # ns
"""


def read(text: str) -> Machine:
    return read_machine(Source(text, "a/three.yml"))


def test_each_dimension_is_a_level_with_a_link_per_device() -> None:
    machine = read(THREE)
    assert (machine.name, machine.size) == ("three", 24)
    assert [level.kind for level in machine.levels] == ["ring", "full", "rails"]
    assert [level.ports for level in machine.levels] == [1, 4, 8]
    assert [link.bandwidth for link in machine.links] == [
        200 * 2.0**30,
        100 * 2.0**30,
        50 * 2.0**30,
    ]


def test_latency_is_that_of_the_links_passed() -> None:
    machine = read(THREE)
    # Two hops of a ring, one of a mesh, two through a switch, and one dimension after the other.
    dst = np.array([2, 4, 8, 8 + 4 + 1])
    expected = [100e-9, 500e-9, 4000e-9, 4000e-9 + 500e-9 + 50e-9]
    np.testing.assert_allclose(machine.latency_of(np.array([0]), dst), expected)
    hops = np.diff(machine.routes(np.array([0]), dst).pointer)
    assert hops.tolist() == [2, 1, 2, 4]


def test_a_first_switch_is_one_for_all() -> None:
    machine = read("topology: [Switch]\nnpus_count: [8]\nbandwidth: [400.0]\nlatency: [936.25]\n")
    assert machine.levels[0].kind == "switch"
    assert machine.links[0].latency == pytest.approx(2 * 936.25e-9)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "Ring",
            "Mesh",
            "a/three.yml:1:13: topology.0: Input should be 'Ring', '",
        ),
        (
            "[ 4, 2, 3 ]",
            "[ 4, 2 ]",
            "a/three.yml:1:1: `npus_count` has 2 entries and `",
        ),
        (
            "[ 4, 2, 3 ]",
            "[ 4, 1, 3 ]",
            "a/three.yml:2:18: npus_count.1: Input should be greater",
        ),
        ("50.0", "tbd", "a/three.yml:4:12: latency.0: Input should be a valid number"),
        (
            "50.0",
            "-1",
            "a/three.yml:4:12: latency.0: Input should be greater than or",
        ),
        ("200.0", ".inf", "a/three.yml:3:14: bandwidth.0: Input should be a finite number"),
        ("latency", "Latency", "a/three.yml:1:1: latency: missing; give it"),
        ("[ 4, 2, 3 ]", "[ 4000, 4000, 4000 ]", "devices are more than 16777216"),
    ],
)
def test_what_is_no_such_network_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(THREE.replace(old, new, 1))
    assert said in str(error.value)
