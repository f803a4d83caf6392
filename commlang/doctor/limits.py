"""DR1: cores, memory, shared memory and limits of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.doctor import sources
from commlang.doctor.advice import Rule, Said, Severity

if TYPE_CHECKING:
    from commlang.doctor.probe import Probe

MIB, GIB = 1 << 20, 1 << 30
LEAST_SHM = GIB
"""What NCCL's manual gives a container of Docker, whose default is 64 MiB."""
FEW_FILES = 4096
"""Each rank holds a socket to most others, and a descriptor for each tensor that it shares."""
FULL = 8 * MIB


def full_shm(probe: Probe) -> Said | None:
    if probe.shm_free is None or probe.shm_free >= FULL:
        return None
    fact = f"/dev/shm has {probe.shm_free // MIB} MiB free"
    why = "NCCL and data loaders keep their buffers there, and crash when it is full"
    return Said(fact, why, "remove what ended jobs left in /dev/shm, or make it larger")


def small_shm(probe: Probe) -> Said | None:
    if probe.shm is None or probe.shm >= LEAST_SHM or full_shm(probe):
        return None
    fact = f"/dev/shm holds {probe.shm // MIB} MiB"
    why = "NCCL and data loaders keep buffers there for each pair of ranks; a container has 64 MiB"
    return Said(fact, why, "docker run --shm-size=1g or more, or --ipc=host")


def few_descriptors(probe: Probe) -> Said | None:
    limit = probe.limits.get("nofile")
    if limit is None or limit < 0 or limit >= FEW_FILES:
        return None
    why = "a rank holds sockets to many others and a descriptor for each tensor that it shares"
    return Said(f"a process may open {limit:,} files", why, "ulimit -n 65536")


def little_locked_memory(probe: Probe) -> Said | None:
    limit = probe.limits.get("memlock", -1)
    if limit < 0 or not probe.infiniband:
        return None
    fact = f"a process may lock {limit // 1024:,} KiB of memory, and there is InfiniBand"
    why = "its buffers are registered, which locks them; NCCL fails beyond the limit"
    return Said(fact, why, "ulimit -l unlimited, or docker run --ulimit memlock=-1")


def short_quota(probe: Probe) -> Said | None:
    if probe.quota is None or probe.quota >= probe.cores:
        return None
    fact = f"{probe.cores} cores are seen, of which the control group grants {probe.quota:g}"
    why = "threads are made for all cores, and all of them stand still when the share is used up"
    todo = f"set OMP_NUM_THREADS so that all ranks have {probe.quota:g} threads at most"
    return Said(fact, why, todo)


def several_numa_nodes(probe: Probe) -> Said | None:
    if probe.numa_nodes < 2:
        return None
    fact = f"memory is spread over {probe.numa_nodes} NUMA nodes"
    why = "a rank whose cores, memory and GPU are on different nodes crosses between them"
    return Said(fact, why, "bind ranks: torchrun --numa-binding=node, or numactl for each")


RULES = (
    Rule("DR101", Severity.BROKEN, sources.NCCL_TROUBLE, full_shm),
    Rule("DR102", Severity.WARNING, sources.NCCL_TROUBLE, small_shm),
    Rule("DR103", Severity.WARNING, sources.DESCRIPTORS, few_descriptors),
    Rule("DR104", Severity.WARNING, sources.NCCL_TROUBLE, little_locked_memory),
    Rule("DR105", Severity.WARNING, sources.CGROUP, short_quota),
    Rule("DR106", Severity.ADVICE, sources.TUNING, several_numa_nodes),
)
