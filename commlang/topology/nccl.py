"""NCCL's topology XML, as `NCCL_TOPO_DUMP_FILE` writes it, read as a machine.

NCCL's graph may be any; a machine has levels of equal groups. What does not fit is taken as one
switch, and `about` says so.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.errors import UsageError
from commlang.records import entity
from commlang.topology import nccl_xml as xml
from commlang.topology.marked import Marked
from commlang.topology.model import Machine
from commlang.topology.validate import validated

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from commlang.topology.nccl_xml import Element

MAX_GPUS = 4096
NODES = 4096
"""Most nodes that the file's network cards are taken to join."""
# NCCL's own latencies, in seconds: see the shipped machines. The file has none but the card's.
_OVERHEAD, _NVLINK, _PCI, _NET = 3.3e-6, 1.9e-6, 2.5e-6, 4e-6
_SOURCE = "NCCL's topology file; latency and overhead: src/graph/tuning.cc of NCCL"
_SWITCH, _GPU = "0x068000", "0x03"


@entity
class _Draft:
    """A machine while it is made."""

    links: list[dict[str, Any]]
    levels: list[dict[str, Any]]
    notes: list[str]

    @property
    def inside(self) -> int:
        """How many devices a group of the outermost level so far has."""
        return math.prod(level["size"] for level in self.levels)

    def join(self, name: str, kind: str, groups: int, bandwidth: float, latency: float,
             **more: object) -> None:  # fmt: skip
        """A level that joins so many of the groups so far, by links of its own class."""
        self.links.append(
            {
                "name": name,
                "bandwidth": bandwidth,
                "latency": latency,
                "overhead": _OVERHEAD,
                "source": _SOURCE,
            }
        )
        self.levels.append({"name": name, "kind": kind, "link": name, "size": groups, **more})


def read_nccl(text: str, path: str) -> Machine:
    """The machine of a topology file; raises UsageError, with its place, for what is none.

    Devices are in the order of the GPUs' ranks. If there are network cards, the file is taken as
    one node of up to `NODES`, and what joins them as a switch that is never full.
    """
    root = xml.read_tree(text, path)
    if root.name != "system":
        raise UsageError(f"{root.where}: <{root.name}> is no topology of NCCL; that is <system>")
    gpus = [element for element in root.walk() if element.name == "gpu"]
    if not 1 <= len(gpus) <= MAX_GPUS:
        raise UsageError(f"{path}: {len(gpus)} <gpu> elements; there must be 1 to {MAX_GPUS}")
    gpus.sort(key=lambda gpu: (gpu.integer("rank", 0), gpu.integer("dev", 0)))
    draft = _Draft([], [], ["Read from NCCL's topology file"])
    if any(element.name == "xgmi" for element in root.walk()):
        draft.notes.append("The XGMI links of RCCL are not read: PCIe alone")
    _join_nvlinks(draft, gpus)
    _join_pci(draft, gpus)
    _join_nets(draft, [element for element in root.walk() if element.name == "net"], len(gpus))
    if not draft.levels:
        draft.join("node", "switch", 1, xml.GB, _PCI)
    data = {
        "name": Path(path).stem[:100] or "nccl",
        "about": ". ".join(draft.notes),
        "links": draft.links,
        "levels": draft.levels,
    }
    return validated(Marked(path, data, {}), Machine)


def _join_nvlinks(draft: _Draft, gpus: Sequence[Element]) -> None:
    if len(gpus) == 1:
        return
    switched = [_links(gpu, _SWITCH) for gpu in gpus]
    if all(switched):
        width = min(n * xml.nvlink_bandwidth(gpu) for n, gpu in zip(switched, gpus, strict=True))
        draft.join("nvlink", "switch", len(gpus), width, _NVLINK)
        return
    peers = [_peers(gpu, gpus) for gpu in gpus]
    if not any(peers):
        return
    islands = _islands(peers)
    size = len(islands[0])
    counts = {n for mine in peers for n in mine.values()}
    width = xml.nvlink_bandwidth(gpus[0])
    if _even(islands) and len(counts) == 1 and all(len(mine) == size - 1 for mine in peers):
        draft.join("nvlink", "full", size, counts.pop() * width, _NVLINK)
    elif len(islands) == 1:
        draft.notes.append(
            "NVLink joins only some pairs of GPUs, or some better than others: taken as a switch "
            "that each GPU has all its links to"
        )
        least = min(sum(mine.values()) for mine in peers)
        draft.join("nvlink", "switch", len(gpus), least * width, _NVLINK)
    else:
        draft.notes.append("NVLink joins uneven groups of GPUs: left out")


def _links(gpu: Element, target: str) -> int:
    """How many NVLinks of a GPU go to targets of a class."""
    links = (child for child in gpu.children if child.name == "nvlink")
    return sum(
        max(link.integer("count", 1), 0) for link in links if link.text("tclass").startswith(target)
    )


def _peers(gpu: Element, gpus: Sequence[Element]) -> dict[int, int]:
    """How many NVLinks go straight to each other GPU, by its place in order."""
    place = {_bus(other): at for at, other in enumerate(gpus)}
    found: dict[int, int] = {}
    for link in gpu.children:
        at = place.get(link.text("target").lower())
        if link.name == "nvlink" and at is not None and link.text("tclass").startswith(_GPU):
            found[at] = found.get(at, 0) + max(link.integer("count", 1), 0)
    return found


def _bus(gpu: Element) -> str:
    return gpu.parent.text("busid").lower() if gpu.parent else ""


def _islands(peers: list[dict[int, int]]) -> list[list[int]]:
    """The places of GPUs that NVLinks join, directly or not."""
    import networkx as nx

    graph = nx.Graph((a, b) for a, mine in enumerate(peers) for b in mine)
    graph.add_nodes_from(range(len(peers)))
    return sorted(sorted(island) for island in nx.connected_components(graph))


def _even(groups: list[list[int]]) -> bool:
    """Whether groups are equally large and each is of neighbours in order."""
    size = len(groups[0])
    return all(group == list(range(n * size, (n + 1) * size)) for n, group in enumerate(groups))


def _join_pci(draft: _Draft, gpus: Sequence[Element]) -> None:
    """PCIe switches, then processors, for what NVLink did not join."""
    if draft.inside == len(gpus):
        return
    own = min(xml.pci_bandwidth(gpu.parent) for gpu in gpus if gpu.parent)
    first = True
    for name, keys, width in (
        ("pcie", _bridges(gpus), own),
        ("processor", [_processor(gpu) for gpu in gpus], _uplink(gpus, own)),
    ):
        groups = _grouped(keys)
        size = len(groups[0]) // draft.inside
        if not _even(groups) or len(groups[0]) % draft.inside or size == 1:
            continue
        ports = draft.inside if first else 1
        draft.join(name, "switch", size, own if first else width, _PCI, carries=True, ports=ports)
        first = False
    _join_processors(draft, gpus, own)


def _join_processors(draft: _Draft, gpus: Sequence[Element], own: float) -> None:
    rest = len(gpus) // draft.inside
    if rest == 1:
        return
    cpus = {
        _processor(gpu): around for gpu in gpus for around in gpu.above() if around.name == "cpu"
    }
    if len(cpus) == rest and _even(_grouped([_processor(gpu) for gpu in gpus])):
        width = min(xml.processor_bandwidth(cpu) for cpu in cpus.values())
        draft.join("processors", "full", rest, width, _PCI)
        return
    draft.notes.append("PCIe switches or processors have unequal numbers of GPUs: one switch")
    ports = 1 if draft.levels and draft.levels[-1].get("carries") else draft.inside
    draft.join("host", "switch", rest, own, _PCI, ports=ports)


def _grouped(keys: Sequence[Hashable]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for at, key in enumerate(keys):
        groups.setdefault(key, []).append(at)
    return list(groups.values())


def _processor(gpu: Element) -> tuple[str, str]:
    cpu = next((around for around in gpu.above() if around.name == "cpu"), None)
    return (cpu.text("host_hash"), cpu.text("numaid")) if cpu else ("", "")


def _bridges(gpus: Sequence[Element]) -> list[Hashable]:
    """Per GPU the nearest PCIe switch with other GPUs below it too, or itself if there is none."""
    below = Counter(id(up) for gpu in gpus for up in gpu.above() if up.name == "pci")
    shared = [[id(up) for up in gpu.above() if below[id(up)] > 1] for gpu in gpus]
    return [mine[0] if mine else id(gpu) for mine, gpu in zip(shared, gpus, strict=True)]


def _uplink(gpus: Sequence[Element], own: float) -> float:
    """Bytes per second of the way up of the PCIe switches right below processors."""
    tops = [
        around
        for gpu in gpus
        for around in gpu.above()
        if around.name == "pci" and around.parent and around.parent.name == "cpu"
    ]
    return min((xml.pci_bandwidth(top) for top in tops), default=own)


def _join_nets(draft: _Draft, nets: Sequence[Element], gpus: int) -> None:
    """Several such nodes, each GPU with its even part of the network cards."""
    if not nets:
        return
    ports = gpus if len(nets) >= gpus else math.gcd(gpus, len(nets))
    width = sum(xml.net_bandwidth(net) for net in nets) / ports
    delay = max(_delay(net) for net in nets)
    draft.notes.append(
        "What joins the network cards is not in the file: a switch that is never full"
    )
    draft.join("network", "switch", NODES, width, _NET + delay, ports=ports)


def _delay(net: Element) -> float:
    """Seconds of a card's own latency, which the file has in microseconds."""
    try:
        delay = float(net.text("latency", "0")) * 1e-6
    except ValueError:
        return 0.0
    return delay if 0 <= delay < 1 else 0.0
