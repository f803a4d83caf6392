"""NCCL's topology files as machines, from small files as its versions write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commlang.errors import UsageError
from commlang.source import Source
from commlang.topology.load import read_machine

from .machines import named_route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.topology import Machine

INTEL = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"'
SPEED = 'link_speed="16.0 GT/s PCIe" link_width="16"'
NET = '<pci busid="a" {}><nic><net name="m" dev="0" speed="{}" latency="{}"/></nic></pci>'


def gpu(rank: int, inside: str = "", sm: int = 90) -> str:
    bus = f"0000:{rank:02x}:00.0"
    return (
        f'<pci busid="{bus}" class="0x030200" {SPEED}>'
        f'<gpu dev="{rank}" sm="{sm}" rank="{rank}" gdr="1">{inside}</gpu></pci>'
    )


def link(to: int | str, count: int, kind: str = "0x030200") -> str:
    target = to if isinstance(to, str) else f"0000:{to:02X}:00.0"
    return f'<nvlink target="{target}" count="{count}" tclass="{kind}"/>'


def bridge(*inside: str, width: int = 16) -> str:
    speed = f'link_speed="32.0 GT/s PCIe" link_width="{width}"'
    return f'<pci busid="b" class="0x060400" {speed}>{"".join(inside)}</pci>'


def system(*cpus: Sequence[str], about: str = INTEL) -> str:
    made = (f'<cpu numaid="{at}" {about}>{"".join(cpu)}</cpu>' for at, cpu in enumerate(cpus))
    return "\n".join(['<system version="1">', *made, "</system>"])


def read(text: str) -> Machine:
    return read_machine(Source(text, "box.xml"))


def refused(text: str) -> str:
    with pytest.raises(UsageError) as error:
        read(text)
    return str(error.value)


def test_gpus_on_nvswitches_and_a_card_each() -> None:
    switches = link("5", 5, "0x068000") + link("6", 5, "0x068000") + link("7", 8, "0x068000")
    half = [bridge(gpu(at, switches), NET.format(SPEED, 400000, 0)) for at in range(4)]
    machine = read(system(half[:2], half[2:]))
    assert machine.name == "box"
    assert [(level.kind, level.size, level.ports) for level in machine.levels] == [
        ("switch", (4,), 1),
        ("switch", (4096,), 4),
    ]
    assert [lk.bandwidth for lk in machine.links] == pytest.approx([18 * 20.6e9, 50e9])
    assert machine.about == (
        "Read from NCCL's topology file. What joins the network cards is not in the file: a "
        "switch that is never full"
    )
    assert machine.for_world(8).levels[-1].size == (2,)


def test_gpus_on_pcie_switches_below_two_processors() -> None:
    switches = [bridge(gpu(at), gpu(at + 1), width=8) for at in (0, 2, 4, 6)]
    machine = read(system(switches[:2], switches[2:]))
    assert [(level.name, level.kind, level.size) for level in machine.levels] == [
        ("pcie", "switch", (2,)),
        ("processor", "switch", (2,)),
        ("processors", "full", (2,)),
    ]
    # PCIe 4.0 of 16 lanes, 5.0 of 8, and Sapphire Rapids to its like, as NCCL counts them.
    assert [lk.bandwidth for lk in machine.links] == [24e9, 24e9, 22e9]
    assert named_route(machine, 1, 6) == [
        "device 1 → pcie 0",
        "pcie 0 → processor 0",
        "processor 0 → processor 1",
        "processor 1 → pcie 3",
        "pcie 3 → device 6",
    ]


def test_pairs_of_gpus_with_a_bridge_of_nvlink() -> None:
    gpus = [gpu(at, link(at ^ 1, 4), sm=80) for at in range(4)]
    machine = read(system(gpus, about='arch="x86_64" vendor="AuthenticAMD"'))
    assert [(level.name, level.kind, level.size, level.ports) for level in machine.levels] == [
        ("nvlink", "full", (2,), 1),
        ("processor", "switch", (2,), 2),
    ]
    assert [lk.bandwidth for lk in machine.links] == [80e9, 24e9]


def test_nvlinks_between_some_pairs_only_are_taken_as_a_switch() -> None:
    ring = [gpu(at, link((at + 1) % 4, 2) + link((at + 3) % 4, 1), sm=70) for at in range(4)]
    machine = read(system(ring))
    assert machine.levels[0].kind == "switch"
    assert machine.links[0].bandwidth == 60e9
    assert "NVLink joins only some pairs of GPUs" in machine.about
    uneven = [gpu(0, link(1, 2)), gpu(1, link(0, 2)), gpu(2)]
    assert "NVLink joins uneven groups of GPUs: left out" in read(system(uneven)).about


def test_processors_with_unequal_numbers_of_gpus_are_one_switch() -> None:
    machine = read(system([gpu(0), gpu(1)], [gpu(2)]))
    assert [(level.kind, level.size) for level in machine.levels] == [("switch", (3,))]
    assert "unequal numbers of GPUs: one switch" in machine.about


def test_two_cards_are_shared_by_four_gpus_and_their_latency_counts() -> None:
    gpus = [gpu(at, link("5", 12, "0x068000"), sm=80) for at in range(4)]
    nets = [NET.format(SPEED, 200000, "75"), NET.format(SPEED, -1, "x")]
    machine = read(system([*gpus, *nets]))
    network = machine.levels[-1]
    assert (network.ports, machine.links[-1].bandwidth) == (2, (25e9 + 1.25e9) / 2)
    assert machine.links[-1].latency == pytest.approx(79e-6)
    assert machine.link_of(np.array([0, 0]), np.array([3, 4])).tolist() == [0, 1]


def test_one_gpu_is_a_machine_of_one() -> None:
    assert read(system([gpu(0)])).size == 1


def test_devices_are_in_order_of_ranks() -> None:
    swapped = read(system([gpu(2), gpu(3)], [gpu(0), gpu(1)]))
    assert [level.name for level in swapped.levels] == ["processor", "processors"]
    mixed = read(system([gpu(0), gpu(2)], [gpu(1), gpu(3)]))
    assert [level.name for level in mixed.levels] == ["host"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<a/>", "box.xml:1:1: <a> is no topology of NCCL; that is <system>"),
        ("<system>", "box.xml:1:9: no element found; not XML"),
        ("<system></cpu>", "box.xml:1:11: mismatched tag; not XML"),
        ("<system/>", "box.xml: 0 <gpu> elements; there must be 1 to 4096"),
        (
            "<" + "a><" * 101 + "b/>",
            "box.xml:1:301: nested more than 100 deep; not",
        ),
        (
            '<!DOCTYPE s [<!ENTITY a "aaaa">]><system>&a;</system>',
            "box.xml:1:13: a document type; NCCL's topology has none",
        ),
        (
            system(['<pci busid="1">\n<gpu rank="x"/></pci>']),
            'box.xml:3:1: <gpu rank="x">: not a number',
        ),
        (
            system([gpu(0, link("5", 10**30, "0x068000")), gpu(1, link("5", 1, "0x068000"))]),
            "not a number",
        ),
    ],
)
def test_what_is_no_topology_is_refused(text: str, said: str) -> None:
    assert said in refused(text)
