"""Machines that are not there, and what is said of each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commlang.doctor import GENERAL, Device, Lookup, Probe, Severity, advise
from commlang.doctor.advice import rules
from commlang.doctor.probe import matters

H100 = Device("NVIDIA H100 80GB HBM3", 80 << 30)
CPU = Probe(
    "node1",
    "3.12.1",
    "2.13.0+cpu",
    backends={"gloo": "", "nccl": None, "mpi": None, "ucc": None},
    network=("eth0 100 Gb/s",),
    interfaces=("lo", "eth0", "ib0"),
    cores=8,
    memory=64 << 30,
    memory_free=60 << 30,
    shm=32 << 30,
    shm_free=32 << 30,
    limits={"nofile": 65536, "memlock": -1, "nproc": -1},
    variables={"OMP_NUM_THREADS": "1"},
    own_name=Lookup("node1", "10.0.0.1", 0.001),
)
GPU = replace(
    CPU,
    torch="2.13.0+cu130",
    build={"cuda": "13.0"},
    backends={"gloo": "", "nccl": "2.28.9", "mpi": None, "ucc": None},
    devices=(H100,) * 8,
    gpus_seen=8,
    links={"NV18": 28},
    infiniband=("mlx5_0:1 InfiniBand ACTIVE 400 Gb/sec (4X NDR)",),
)


def with_variables(probe: Probe, **variables: str) -> Probe:
    return replace(probe, variables={"OMP_NUM_THREADS": "1"} | variables)


def told(probe: Probe) -> dict[str, str]:
    """What is said of a machine by its code, on one line."""
    return {a.code: f"{a.severity}: {a.fact}; {a.why}; {a.todo}" for a in advise(probe)}


def looked_up(address: str | None, seconds: float = 0.0, error: str = "") -> Lookup:
    return Lookup("node1", address, seconds, error)


NO_TORCH = {"torch": None, "backends": {}, "build": {}}
CASES: dict[str, tuple[Probe, str]] = {
    "DR001": (
        replace(CPU, **NO_TORCH, torch_error="No module named 'torch'"),
        "broken: torch cannot be imported: No module named 'torch'; no rank can run",
    ),
    "DR002": (
        replace(CPU, backends=dict.fromkeys(CPU.backends)),
        "broken: torch 2.13.0+cpu is built without torch.distributed",
    ),
    "DR003": (
        replace(CPU, gpus_seen=2),
        "broken: the driver lists 2 GPUs, of which torch 2.13.0+cpu sees none; all ranks would "
        "compute on the CPU; install a build of torch for CUDA",
    ),
    "DR004": (
        replace(GPU, backends=CPU.backends),
        "warning: there are GPUs, and torch has no nccl; gloo copies each tensor",
    ),
    "DR005": (GPU, "advice: torch sees 8 GPUs and has nccl 2.28.9; it is the fastest"),
    "DR006": (
        replace(CPU, infiniband=GPU.infiniband),
        "advice: there are no GPUs, but InfiniBand: mlx5_0:1 InfiniBand ACTIVE 400",
    ),
    "DR007": (
        replace(CPU, numpy=False),
        "broken: torch cannot turn a tensor into a numpy array; collectives of objects",
    ),
    "DR008": (
        replace(GPU, links={"NV4": 4, "SYS": 16, "PHB": 8}),
        "advice: pairs of GPUs are linked over the CPU's bridges: 8 by PHB, 16 by SYS",
    ),
    "DR101": (replace(CPU, shm_free=4096), "broken: /dev/shm has 0 MiB free"),
    "DR102": (
        replace(CPU, shm=64 << 20, shm_free=64 << 20),
        "warning: /dev/shm holds 64 MiB; NCCL and data loaders",
    ),
    "DR103": (replace(CPU, limits={"nofile": 1024}), "warning: a process may open 1,024 files"),
    "DR104": (
        replace(GPU, limits={"memlock": 8 << 20}),
        "warning: a process may lock 8,192 KiB of memory, and there is InfiniBand",
    ),
    "DR105": (
        replace(CPU, quota=1.5),
        "warning: 8 cores are seen, of which the control group grants 1.5",
    ),
    "DR106": (replace(CPU, numa_nodes=2), "advice: memory is spread over 2 NUMA nodes"),
    "DR201": (
        replace(CPU, own_name=looked_up(None, error="Name or service not known")),
        "warning: this host's name node1 has no address: Name or service not known; gloo binds",
    ),
    "DR202": (
        replace(CPU, own_name=looked_up("10.0.0.1", 5.0)),
        "warning: to look up this host's name node1 takes 5.0 s; every rank does so",
    ),
    "DR203": (
        replace(CPU, master=looked_up(None, error="no answer within 10 s")),
        "broken: MASTER_ADDR=node1 has no address: no answer within 10 s; no rank can meet",
    ),
    "DR204": (
        replace(CPU, master=looked_up("10.0.0.1", 0.75)),
        "warning: to look up MASTER_ADDR=node1 takes 0.8 s; every rank does so to join; write its "
        "address, 10.0.0.1",
    ),
    "DR205": (
        replace(GPU, infiniband=(*GPU.infiniband, "mlx5_1:1 InfiniBand DOWN 10 Gb/sec")),
        "warning: not active: mlx5_1:1 InfiniBand DOWN 10 Gb/sec; NCCL goes over the ports",
    ),
    "DR206": (
        replace(GPU, infiniband=(), network=("eth0 10 Gb/s", "eth1")),
        "advice: there are GPUs, no InfiniBand, and the fastest card makes 10 Gb/s",
    ),
    "DR207": (
        replace(CPU, own_name=looked_up("127.0.1.1")),
        "advice: this host's name node1 is 127.0.1.1, which is the host itself only",
    ),
    "DR301": (with_variables(CPU, NCCL_P2P_DISABLE="1"), "warning: NCCL_P2P_DISABLE is set; GPUs"),
    "DR302": (
        with_variables(GPU, NCCL_IB_DISABLE="1"),
        "warning: NCCL_IB_DISABLE is set; NCCL then goes over TCP between hosts, though there is "
        "mlx5_0:1 InfiniBand",
    ),
    "DR303": (with_variables(CPU, NCCL_SHM_DISABLE="1"), "warning: NCCL_SHM_DISABLE is set; GPUs"),
    "DR304": (
        with_variables(CPU, TORCH_DISTRIBUTED_DEBUG="detail"),
        "warning: TORCH_DISTRIBUTED_DEBUG is DETAIL; each collective is then preceded by another",
    ),
    "DR305": (
        with_variables(CPU, CUDA_LAUNCH_BLOCKING="1"),
        "warning: CUDA_LAUNCH_BLOCKING is set; the host waits for each kernel",
    ),
    "DR306": (
        with_variables(CPU, NCCL_BLOCKING_WAIT="1"),
        "warning: NCCL_BLOCKING_WAIT is set; wait() then stops the host",
    ),
    "DR307": (
        with_variables(CPU, TORCH_NCCL_ASYNC_ERROR_HANDLING="0"),
        "warning: TORCH_NCCL_ASYNC_ERROR_HANDLING is 0; a rank whose collective failed",
    ),
    "DR308": (with_variables(CPU, NCCL_DEBUG="INFO"), "advice: NCCL_DEBUG is INFO; every rank"),
    "DR309": (
        with_variables(CPU, NCCL_ALGO="Ring", NCCL_PROTO="LL"),
        "advice: set by hand: NCCL_ALGO, NCCL_PROTO; NCCL chooses by size and topology",
    ),
    "DR310": (
        replace(CPU, variables={}),
        "advice: OMP_NUM_THREADS is not set, and there are 8 cores; ranks started by hand",
    ),
    "DR311": (
        with_variables(CPU, OMP_NUM_THREADS="4", LOCAL_WORLD_SIZE="4"),
        "warning: OMP_NUM_THREADS is 4 for each of 4 ranks, and there are 8 cores; threads that "
        "wait for a core keep those that have one waiting at each barrier; set it to 2",
    ),
    "DR312": (
        with_variables(CPU, GLOO_SOCKET_IFNAME="eth1"),
        "broken: GLOO_SOCKET_IFNAME is eth1, and no network interface is called so; no group can "
        "be made; there are lo, eth0, ib0",
    ),
    "DR313": (
        with_variables(CPU, RANK="0", WORLD_SIZE="2"),
        "warning: RANK, WORLD_SIZE are set, MASTER_ADDR, MASTER_PORT not; init_method=",
    ),
    "DR315": (
        with_variables(CPU, OMP_NUM_THREADS="many"),
        "warning: OMP_NUM_THREADS is 'many', which is no number of threads; OpenMP then takes",
    ),
    "DR314": (
        replace(with_variables(GPU, CUDA_VISIBLE_DEVICES="0,1"), devices=(H100,) * 2),
        "advice: CUDA_VISIBLE_DEVICES is '0,1': torch sees 2 of 8 GPUs; LOCAL_RANK counts",
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_a_machine_is_told_what_it_lacks(code: str) -> None:
    probe, said = CASES[code]
    found = told(probe)
    assert found[code].startswith(said)
    assert found.keys() <= {code, "DR005", "DR310"}, "and nothing else"


def test_every_rule_has_a_machine_an_own_code_and_a_source() -> None:
    codes = [rule.code for rule in rules()]
    assert codes == sorted(CASES)
    general = [practice.code for practice in GENERAL]
    assert len({*codes, *general}) == len(codes) + len(general)
    for source in [rule.source for rule in rules()] + [practice.source for practice in GENERAL]:
        assert re.match(r"https://(docs\.)?(pytorch\.org|nvidia\.com|kernel\.org)/", source), source


def test_the_page_lists_all_with_their_sources() -> None:
    page = Path(__file__).parents[2] / "docs" / "doctor.md"
    lines = re.findall(r"^\| (DR\d+) \| (.+) \| \[\w+]\((\S+)\) \|$", page.read_text("utf-8"), re.M)
    listed = [(code, words.split(" | ")[0], source) for code, words, source in lines]
    known = [(rule.code, str(rule.severity), rule.source) for rule in rules()]
    assert listed == [*known, *((p.code, p.fact, p.source) for p in GENERAL)]


def test_of_a_good_machine_there_is_nothing_to_say() -> None:
    assert told(CPU) == {}
    assert told(GPU).keys() == {"DR005"}


def test_the_worst_comes_first() -> None:
    probe = replace(CPU, numpy=False, numa_nodes=2, quota=1.0, variables={})
    severities = [found.severity for found in advise(probe)]
    assert severities == [Severity.BROKEN, Severity.WARNING, Severity.ADVICE, Severity.ADVICE]


def test_nothing_is_said_of_what_was_not_looked_at() -> None:
    assert told(Probe("node1", "3.12.1", "2.13.0", backends={"gloo": ""})) == {}


@pytest.mark.parametrize(
    ("name", "asked", "fits"),
    [
        ("GLOO_SOCKET_IFNAME", "eth0", True),
        ("GLOO_SOCKET_IFNAME", "eth0,ib0", True),
        ("GLOO_SOCKET_IFNAME", "eth", False),
        ("NCCL_SOCKET_IFNAME", "eth", True),
        ("NCCL_SOCKET_IFNAME", "=eth", False),
        ("NCCL_SOCKET_IFNAME", "=eth0,ib0", True),
        ("NCCL_SOCKET_IFNAME", "bond,ib", True),
        ("NCCL_SOCKET_IFNAME", "^docker,lo", True),
        ("NCCL_SOCKET_IFNAME", "^eth,lo,ib", False),
        ("NCCL_SOCKET_IFNAME", "^=eth", True),
    ],
)
def test_interfaces_are_chosen_as_the_backends_do(name: str, asked: str, fits: bool) -> None:
    assert ("DR312" not in told(with_variables(CPU, **{name: asked}))) == fits


@pytest.mark.parametrize(
    "variables",
    [
        {"NCCL_P2P_DISABLE": "0"},
        {"NCCL_IB_DISABLE": ""},
        {"TORCH_NCCL_BLOCKING_WAIT": "0"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"},
        {"TORCH_DISTRIBUTED_DEBUG": "INFO"},
        {"NCCL_DEBUG": "WARN"},
        {"OMP_NUM_THREADS": "8"},
        {"OMP_NUM_THREADS": "4,2"},
        {"MASTER_ADDR": "node1"},
        {"CUDA_VISIBLE_DEVICES": ""},
    ],
)
def test_what_does_no_harm_is_let_be(variables: dict[str, Any]) -> None:
    assert told(with_variables(CPU, **variables)) == {}


def test_the_variables_that_matter() -> None:
    names = ("NCCL_IB_HCA", "TORCH_LOGS", "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS", "MASTER_ADDR")
    assert all(map(matters, names))
    assert not any(map(matters, ("HOME", "PATH", "AWS_SECRET_ACCESS_KEY", "RANKS")))
