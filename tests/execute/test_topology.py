"""What hosts tell of their devices: texts as of nvidia-smi, and folders as of the kernel."""

from __future__ import annotations

import platform
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from commlang.execute import session, topology
from commlang.execute.topology import Topology, infiniband, links_of, network, probe
from commlang.report.run import HostTopology
from commlang.report.text import _host  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from pathlib import Path

# GPUs with NVLinks each to each, by an older nvidia-smi, where cards stand under their names.
# Form: https://github.com/NVIDIA/nccl-tests/issues/78
OLDER = """\
\tGPU0\tGPU1\tGPU2\tmlx5_0\tmlx5_1\tCPU Affinity
GPU0\t X \tNV6\tNV6\tPIX\tPXB\t0-23,48-71
GPU1\tNV6\t X \tNV6\tPIX\tPXB\t0-23,48-71
GPU2\tNV6\tNV6\t X \tPXB\tPIX\t24-47,72-95
mlx5_0\tPIX\tPIX\tPXB\t X \tPXB
mlx5_1\tPXB\tPXB\tPIX\tPXB\t X

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
"""
# PCIe only, between and within NUMA nodes; the header is underlined on a terminal's behalf.
# Form: https://github.com/deepseek-ai/DeepEP/issues/60
NEWER = """\
\x1b[4m\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNODE\tSYS\tSYS\tPIX\tSYS\t0-47,96-143\t0\t\tN/A
GPU1\tNODE\t X \tSYS\tSYS\tNODE\tSYS\t0-47,96-143\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tNODE\tSYS\tPIX\t48-95,144-191\t1\t\tN/A
GPU3\tSYS\tSYS\tNODE\t X \tSYS\tNODE\t48-95,144-191\t1\t\tN/A
NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS
NIC1\tSYS\tSYS\tPIX\tNODE\tSYS\t X

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
# Two cards of a desktop. Form: https://github.com/noonghunna/club-3090/issues/1229
DESKTOP = """\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tPHB\t0-63\t0\t\tN/A
GPU1\tPHB\t X \t0-63\t0\t\tN/A
"""
ALONE = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\t\tN/A\n"


@pytest.mark.parametrize(
    ("matrix", "links"),
    [
        (OLDER, {"NV6": 3}),
        (NEWER, {"SYS": 4, "NODE": 2}),
        (DESKTOP, {"PHB": 1}),
        (ALONE, {}),
        ("", {}),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", {}),
    ],
)
def test_links_are_counted_once_for_each_pair(matrix: str, links: dict[str, int]) -> None:
    assert links_of(matrix) == links
    assert list(links_of(matrix)) == list(links)


def write(path: Path, **files: str) -> None:
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name).write_text(text + "\n")


def sys_class(path: Path) -> Path:
    ndr = {"state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand"}
    write(path / "infiniband/mlx5_0/ports/1", **ndr)
    write(path / "infiniband/mlx5_1/ports/1", state="1: DOWN", link_layer="Ethernet")
    write(path / "net/eth0", operstate="up", speed="25000")
    write(path / "net/eth1", operstate="up", speed="-1")
    write(path / "net/eth2", operstate="down", speed="1000")
    for card in ("eth0", "eth1", "eth2"):
        (path / "net" / card / "device").mkdir()
    write(path / "net/lo", operstate="unknown")
    (path / "net/bonding_masters").write_text("")
    return path


def test_ports_and_cards_are_told_as_far_as_the_kernel_does(tmp_path: Path) -> None:
    here = sys_class(tmp_path)
    assert infiniband(here) == [
        "mlx5_0:1 InfiniBand ACTIVE 400 Gb/sec (4X NDR)",
        "mlx5_1:1 Ethernet DOWN",
    ]
    assert network(here) == ["eth0 25 Gb/s", "eth1"]
    assert infiniband(tmp_path / "none") == network(tmp_path / "none") == []


def test_a_host_is_one_line_of_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\n[ "$*" = "topo -m" ] && cat <<"END"\n{OLDER}END\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    found = probe("node1", ["NVIDIA A100-SXM4-40GB"] * 3, sys_class(tmp_path / "sys"))
    assert found.links == {"NV6": 3}
    told: dict[str, Any] = {name: getattr(found, name) for name in HostTopology.model_fields}
    assert _host(HostTopology(**told)) == (
        "node1: 3 × NVIDIA A100-SXM4-40GB; 6 NVLinks (3 pairs); "
        "mlx5_0:1 InfiniBand ACTIVE 400 Gb/sec (4X NDR); mlx5_1:1 Ethernet DOWN; "
        "eth0 25 Gb/s; eth1"
    )
    pcie = HostTopology(
        host="node2", gpus=["A", "A", "B"], links={"SYS": 2, "XYZ": 1}, infiniband=[], network=[]
    )
    assert _host(pcie) == ("node2: 2 × A; 1 × B; PCIe, between NUMA nodes (2 pairs); XYZ (1 pair)")


def test_without_the_tool_nothing_is_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert probe("node1", ["A", "B"], tmp_path) == Topology("node1", ["A", "B"])
    monkeypatch.setattr(topology, "_matrix", lambda: pytest.fail("one GPU has no pairs"))
    assert probe("node1", ["A"], tmp_path) == Topology("node1", ["A"])


def test_the_first_rank_of_a_host_with_cuda_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"card {index}")
    monkeypatch.setattr(session, "probe", Topology)

    def world(device: str, local_rank: int) -> Any:
        return SimpleNamespace(device=torch.device(device), local_rank=local_rank)

    assert session.topology_of(world("cuda:0", 0)) == Topology(
        platform.node(), ["card 0", "card 1"]
    )
    assert session.topology_of(world("cuda:1", 1)) is None
    assert session.topology_of(world("cpu", 0)) is None
