"""How a host's GPUs are connected to one another and to others, as far as its tools tell."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_SYS_CLASS = Path("/sys/class")
_PATIENCE_S = 20.0
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(slots=True)
class Topology:
    """What one host says; empty where it says nothing.

    `links` counts pairs of GPUs by the kind of their connection, in nvidia-smi's words: `NV18` is
    18 NVLinks; PIX, PXB, PHB, NODE and SYS are PCIe over ever more bridges, the last between NUMA
    nodes. `infiniband` has a text for each port, `network` one for each card that is a device.
    """

    host: str
    gpus: list[str]
    links: dict[str, int] = field(default_factory=dict[str, int])
    infiniband: list[str] = field(default_factory=list[str])
    network: list[str] = field(default_factory=list[str])


def probe(host: str, gpus: list[str], sys_class: Path = _SYS_CLASS) -> Topology:
    """Ask nvidia-smi and the kernel; `gpus` are the names of the host's GPUs."""
    links = links_of(_matrix()) if len(gpus) > 1 else {}
    return Topology(host, gpus, links, infiniband(sys_class), network(sys_class))


def _matrix() -> str:
    command = ["nvidia-smi", "topo", "-m"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
        return done.stdout
    return ""


def links_of(matrix: str) -> dict[str, int]:
    """Pairs of GPUs by kind of connection, the most first, from what `nvidia-smi topo -m` prints.

    Its columns are the GPUs, then network cards and affinities. A text of another form has none.
    """
    columns = list[str]()
    kinds = Counter[str]()
    for line in _COLOUR.sub("", matrix).splitlines():
        cells = line.split()
        if not columns:
            columns = _leading_gpus(cells)
        elif cells and cells[0] in columns:
            place = columns.index(cells[0])
            kinds.update(cells[place + 2 : len(columns) + 1])  # the upper half: each pair once
    return dict(kinds.most_common())


def _leading_gpus(cells: list[str]) -> list[str]:
    """The GPUs that a header starts with; a row of the matrix has its own name only."""
    found = list[str]()
    for cell in cells:
        if not re.fullmatch(r"GPU\d+", cell):
            break
        found.append(cell)
    return found if len(found) > 1 else []


def infiniband(sys_class: Path) -> list[str]:
    """`mlx5_0:1 InfiniBand ACTIVE 400 Gb/sec (4X NDR)` for each port, RoCE ones as `Ethernet`."""
    found = list[str]()
    for port in sorted(sys_class.glob("infiniband/*/ports/*")):
        state = _text(port / "state").rpartition(":")[2].strip()
        told = (_text(port / "link_layer"), state, _text(port / "rate"))
        found.append(" ".join([f"{port.parts[-3]}:{port.name}", *filter(None, told)]))
    return found


def network(sys_class: Path) -> list[str]:
    """`eth0 25 Gb/s` for each card that is up; without the speed where its driver does not say."""
    found = list[str]()
    for card in sorted(sys_class.glob("net/*")):
        if not (card / "device").exists() or _text(card / "operstate") == "down":
            continue
        megabits = _text(card / "speed")
        known = megabits.isdecimal() and int(megabits) > 0
        found.append(f"{card.name} {int(megabits) / 1000:g} Gb/s" if known else card.name)
    return found


def _text(path: Path) -> str:
    """What the kernel says there, if anything: a card without a link refuses to tell its speed."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
