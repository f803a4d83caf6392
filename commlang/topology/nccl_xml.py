"""NCCL's topology XML as a tree, and what it says of the speed of links.

Figures and rules: NCCL's own, https://github.com/NVIDIA/nccl/tree/master/src/graph, topo.h,
topo.cc and tuning.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.parsers import expat

from commlang.errors import UsageError
from commlang.records import entity

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 100
GB = 1e9

# Payload of a lane of PCIe in Mb/s / 100, by speed (kvDictPciGen); 60 where it is unknown.
_LANES = {"2.5": 15, "5": 30, "5.0": 30, "8": 60, "8.0": 60, "16": 120, "16.0": 120, "32": 240,
          "32.0": 240, "64.0": 480}  # fmt: skip
_UNKNOWN_LANE = 60
# Payload of one NVLink in GB/s, by least compute capability (ncclTopoNVLinkBw).
_NVLINK = ((100, 40.1), (90, 20.6), (87, 20.0), (86, 12.0), (80, 20.0), (70, 20.0), (60, 18.0))
_OLD_NVLINK = 20.0
# GB/s between two processors (ncclTopoGetInterCpuBw of NCCL up to 2.30; later ones count more for
# AMD's from Zen 3 on).
_BETWEEN = {"AuthenticAMD": 16.0, "CentaurHauls": 6.0, "  Shanghai  ": 6.0}
_INTEL = ((0xCF, 40.0), (0x8F, 22.0), (0x55, 10.0))
_OLD_INTEL, _ARM, _POWER, _OTHER = 6.0, 6.0, 32.0, 5000.0


@entity
class Element:
    """One element, with the line that it starts in and what it is inside of."""

    name: str
    attributes: dict[str, str]
    where: str
    parent: Element | None
    children: list[Element]

    def text(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def integer(self, name: str, default: int) -> int:
        """An attribute as C's strtol reads it; raises UsageError, with its place, for no number."""
        text = self.attributes.get(name, "")
        if not text:
            return default
        try:
            return int(text, 0) if len(text) < 20 else int("none")
        except ValueError:
            said = f'<{self.name} {name}="{text[:40]}">'
            raise UsageError(f"{self.where}: {said}: not a number") from None

    def walk(self) -> Iterator[Element]:
        """This element and all inside, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    def above(self) -> Iterator[Element]:
        """The elements around this one, the nearest first."""
        around = self.parent
        while around is not None:
            yield around
            around = around.parent


def read_tree(text: str, path: str) -> Element:
    """The root of a document; raises UsageError for what is no XML, or has entities to expand."""
    parser = expat.ParserCreate()
    roots: list[Element] = []
    stack: list[Element] = []

    def where() -> str:
        return f"{path}:{parser.CurrentLineNumber}:{parser.CurrentColumnNumber + 1}"

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) == MAX_DEPTH:
            raise UsageError(f"{where()}: nested more than {MAX_DEPTH} deep; not NCCL's topology")
        parent = stack[-1] if stack else None
        element = Element(name, attributes, where(), parent, [])
        (parent.children if parent else roots).append(element)
        stack.append(element)

    def document_type(*_: object) -> None:
        raise UsageError(f"{where()}: a document type; NCCL's topology has none")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        place = f"{path}:{error.lineno}:{error.offset + 1}"
        raise UsageError(f"{place}: {expat.ErrorString(error.code)}; not XML") from None
    return roots[0]


def pci_bandwidth(pci: Element) -> float:
    """Bytes per second of the link of a PCIe device to what is above it."""
    speed = pci.text("link_speed").split(" ")[0]
    lanes = pci.integer("link_width", 0) or 16
    return max(lanes, 1) * _LANES.get(speed, _UNKNOWN_LANE) / 80 * GB


def nvlink_bandwidth(gpu: Element) -> float:
    """Bytes per second of one NVLink of a GPU."""
    capability = gpu.integer("sm", 0)
    found = (width for least, width in _NVLINK if capability >= least)
    return next(found, _OLD_NVLINK) * GB


def net_bandwidth(net: Element) -> float:
    """Bytes per second of a network card; 10 Gb/s where its speed is unknown."""
    megabits = net.integer("speed", 0)
    return (megabits if megabits > 0 else 10_000) / 8000 * GB


def processor_bandwidth(cpu: Element) -> float:
    """Bytes per second from one processor to another."""
    arch, vendor = cpu.text("arch"), cpu.text("vendor")
    if arch == "arm64":
        return _ARM * GB
    if arch == "ppc64":
        return _POWER * GB
    if vendor == "GenuineIntel":
        model = cpu.integer("modelid", 0) if cpu.integer("familyid", 0) == 6 else 0
        return next((width for least, width in _INTEL if model >= least), _OLD_INTEL) * GB
    return _BETWEEN.get(vendor, _OTHER) * GB
